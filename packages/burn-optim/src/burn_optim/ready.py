"""What a step works out of a model and a state, kept while none of it is replaced.

The parameters of a model are found by a walk, and those that are updated together by what their
states have in common. Both stay as they are from step to step. A backend tells at once whether
dicts and lists still hold the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

from burn_core import Module, Parameter, containers_of
from burn_tensor import Tensor

if TYPE_CHECKING:
    from burn_optim.optimizer import Group, Optimizer

Owned = list[tuple[Parameter, "Group | None"]]
# The first steps walk: most programs of a few steps are over before anything pays.
_FIRST = 3
# A model whose containers change at every step is walked at every step.
_CHANCES = 8


class Held:
    """Dicts and lists, and what they held when this was made.

    Attributes:
        same: tells whether they hold the same objects.
    """

    def __init__(self, backend: Any, containers: Sequence[Any]) -> None:
        # Alive, so that no other object can get the place of one of them.
        self._kept = [(c, [*(c.values() if c.__class__ is dict else c)]) for c in containers]
        self.same: Callable[[], bool] = backend.same_objects(containers)


class Listing:
    """The parameters of the model that a step had last, each with its group."""

    _model: ref[Module] | None
    _held: Held | None
    _owned: Owned

    def __init__(self) -> None:
        self._forget()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        # A copy of an optimizer works it out anew: this is of the objects that it was copied from.
        return type(self), ()

    def of(self, model: Module, groups: Any, walk: Callable[[], Iterator[Any]]) -> Owned:
        """Return the parameters of a model; the same list while nothing was replaced.

        Args:
            model: whose.
            groups: the list of groups, which the answer depends on.
            walk: yields every parameter with its group.
        """
        before = self._model
        if before is None or before() is not model:
            self._forget()
            self._model = ref(model, _forgetting(ref(self)))
        held = self._held
        if held is not None:
            if held.same():
                return self._owned
            self._chances -= 1
        owned = [*walk()]
        self._held = None
        self._steps += 1
        if owned and self._steps > _FIRST and self._chances:
            containers = containers_of(model)
            if containers is not None:
                backend = owned[0][0].b.resource.backend
                self._held = Held(backend, [*containers, groups])
                self._owned = owned
        return owned

    def _forget(self) -> None:
        self._model = self._held = None
        self._owned = []
        self._steps, self._chances = 0, _CHANCES


def _forgetting(listing: ref[Listing]) -> Callable[[Any], None]:
    """Return what lets go of a model that is gone."""

    def gone(_: Any) -> None:
        mine = listing()
        if mine is not None:
            mine._forget()

    return gone


class Part:
    """Parameters that one operation updates.

    Attributes:
        group: theirs, None of those in none.
        places: of them among the parameters of the model.
        params: the parameters.
        states: theirs.
        names: of the state that they have.
        columns: the states by name.
        counts: what they share.
        alone: nobody else shares it.
    """

    __slots__ = (
        "alone", "columns", "counts", "group", "names", "params", "places", "states",
    )  # fmt: skip

    def __init__(self, group: Group | None) -> None:
        self.group = group
        self.places: list[int] = []
        self.params: list[Parameter] = []

    def owner(self, optimizer: Optimizer) -> Optimizer:
        """Return whose they are; an optimizer that held itself would live until collected."""
        return optimizer if self.group is None else self.group.optimizer

    def settle(self, owner: Optimizer) -> None:
        """Find what belongs to the parameters, once all are there."""
        self.states = states = [owner._state[p] for p in self.params]
        self.names = [n for n in owner.slots if n in states[0]]
        self.columns: dict[str, list[Tensor]] = {
            n: [s[n] for s in states] if n in self.names else [] for n in owner.slots
        }
        self.counts = {n: states[0][n] for n in owner.shared}
        every = owner._state.values()
        self.alone = all(
            sum(s.get(n) is t for s in every) == len(states) for n, t in self.counts.items()
        )


class Parts:
    """The parts of one step, and what they were made of."""

    def __init__(self) -> None:
        self._of: Owned | None = None
        self._missing: list[int] = []
        self._contexts: list[Any] = []
        self._held: Held | None = None
        self._parts: list[Part] = []

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def find(self, owned: Owned, missing: list[int]) -> list[Part] | None:
        """Return the parts of the step before, where this one has the same; else None.

        Args:
            owned: what `Listing.of` returned.
            missing: places of the parameters that have no gradient.
        """
        held = self._held
        if held is None or owned is not self._of or missing != self._missing or not held.same():
            return None
        for (p, _), context in zip(owned, self._contexts, strict=True):
            if p.b is not context:
                return None
        return self._parts

    def keep(
        self, optimizer: Optimizer, owned: Owned, missing: list[int], parts: list[Part]
    ) -> None:
        """Keep the parts of a step."""
        self._of, self._missing, self._parts = owned, missing, parts
        self._contexts = [p.b for p, _ in owned]
        states = [s for part in parts for s in part.states]
        # The count of parameters that share theirs with others is a new tensor at every step.
        backend = parts[0].params[0].b.resource.backend
        steady = all(part.alone for part in parts)
        stores = {id(s): s for s in (part.owner(optimizer)._state for part in parts)}
        self._held = Held(backend, [*stores.values(), *states]) if steady else None
