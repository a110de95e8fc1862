"""Which parameters a step updates together, kept while neither they nor their states are replaced.

What they have in common is asked of every state. It stays as it is from step to step, and a
backend tells at once whether dicts still hold the same objects. Of the model only parameters are
kept, which are those of the states: what else a module holds is none of an optimizer's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, Self

from burn_core import Parameter
from burn_tensor import Tensor

if TYPE_CHECKING:
    from burn_optim.optimizer import Group, Optimizer

Owned = list[tuple[Parameter, "Group | None"]]


class _Held:
    """Dicts, and what they held when this was made.

    Attributes:
        same: tells whether they hold the same objects.
    """

    def __init__(self, backend: Any, dicts: Sequence[dict[Any, Any]]) -> None:
        # Alive, so that no other object can get the place of one of them.
        self._kept = [(d, [*d.values()]) for d in dicts]
        self.same: Callable[[], bool] = backend.same_objects(dicts)


@lru_cache(maxsize=256)
def public(names: tuple[str, ...]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return what reads the settings among the attributes of an optimizer, in their order.

    Args:
        names: of all attributes.
    """
    own = [k for k in names if k not in ("lr", "groups") and not k.startswith("_")]
    if len(own) < 2:
        return lambda attributes: tuple([attributes[k] for k in own])
    return itemgetter(*own)


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
        self._known: list[tuple[Any, ...]] = []
        self._missing: list[int] = []
        self._held: _Held | None = None
        self._parts: list[Part] = []
        self._states: _Held | None = None
        self._stores: list[dict[Parameter, dict[str, Tensor]]] = []
        self._tensors: list[Tensor] = []

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        # A copy of an optimizer works it out anew: this is of the objects it was copied from.
        return type(self), ()

    def find(self, owned: Owned, missing: list[int]) -> list[Part] | None:
        """Return the parts of the step before, where this one has the same; else None.

        Args:
            owned: the parameters of the model with their groups.
            missing: places of the parameters that have no gradient.
        """
        held, known = self._held, self._known
        if held is None or len(owned) != len(known) or missing != self._missing:
            return None
        for (p, group), (q, other, context, dtype) in zip(owned, known, strict=True):
            if p is not q or group is not other or p.b is not context:
                return None
            if getattr(p.v, "dtype", None) is not dtype:  # a lazy parameter holds nothing yet
                return None
        return self._parts if held.same() else None

    def tensors(self, stores: list[dict[Parameter, dict[str, Tensor]]]) -> list[Tensor]:
        """Return the tensors of states, each once, in a fixed order; nobody changes the list.

        Args:
            stores: states by parameter, of an optimizer and of those of its groups.
        """
        known = self._stores
        alike = len(known) == len(stores) and all(map(is_, known, stores))
        if not alike or self._states is None or not self._states.same():
            states = [s for store in stores for s in store.values()]
            found = [t for s in states for t in s.values()]
            self._tensors = [*{id(t): t for t in found}.values()]
            self._stores = stores
            held = _Held(found[0].b.resource.backend, [*stores, *states]) if found else None
            self._states = held
        return self._tensors

    def keep(
        self, optimizer: Optimizer, owned: Owned, missing: list[int], parts: list[Part]
    ) -> None:
        """Keep the parts of a step."""
        self._known = [(p, group, p.b, getattr(p.v, "dtype", None)) for p, group in owned]
        self._missing, self._parts = missing, parts
        states = [s for part in parts for s in part.states]
        # The count of parameters that share theirs with others is a new tensor at every step.
        backend = parts[0].params[0].b.resource.backend
        steady = all(part.alone for part in parts)
        stores = {id(s): s for s in (part.owner(optimizer)._state for part in parts)}
        self._held = _Held(backend, [*stores.values(), *states]) if steady else None
