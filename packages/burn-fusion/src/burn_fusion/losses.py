"""Losses over rows of scores, their gradients, and the elementwise operations next to both.

The gradient of a cross-entropy asks again for the greatest score of each row and for the sum of its
powers. Where the backend can hand them on, both are units with one value between them that the
program does not know. Scores that are made of one tensor and numbers (a cast, a temperature) are
made where they are read, in both, and never written; so is what is made of the gradient alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_backend import GIVEN, Fuser, Group, Part
from burn_fusion.bridges import is_costly
from burn_fusion.extents import TensorOf, is_elementwise
from burn_fusion.groups import Fused, ordered

if TYPE_CHECKING:
    from burn_fusion.plan import Step

# Slots of what is handed on: of the loss, and this.
KEPT = 1 << 31


class Chain(NamedTuple):
    """Elementwise operations on one tensor and numbers, in an order in which they can run.

    Attributes:
        steps: the operations, and what makes numbers among them.
        given: slot of the tensor.
        outs: slots of the results.
        others: slots of what else is read.
    """

    steps: list[Step]
    given: int
    outs: list[int]
    others: list[int]

    def group(self, tensor: TensorOf) -> Group:
        """Return the chain as parts, of which the first is the tensor."""
        dtype = tensor(self.given).dtype
        parts = [Part(GIVEN, (), (), 0, dtype, dtype)]
        place = {self.given: 0} | {s: -1 - k for k, s in enumerate(self.others)}
        for step in self.steps:
            out = tensor(step.slot).dtype
            first = next((k for k, i in enumerate(step.entry.inputs) if i.promoted), 0)
            lead = tensor(step.inputs[first]).dtype if step.inputs else out
            inputs = tuple(None if s is None else place[s] for s in step.inputs)
            place[step.slot] = len(parts)
            count = len(step.scalars())
            parts.append(Part(step.entry.name, inputs, step.static, count, lead, out))
        dtypes = tuple(tensor(s).dtype for s in self.others)
        return Group(tuple(parts), dtypes, tuple(place[s] for s in self.outs))

    def numbers(self) -> list[tuple[int, int]]:
        """Return slot and position of the run-time numbers."""
        return [(step.slot, k) for step in self.steps for k in step.scalars()]


def paired(
    units: Sequence[Step | Fused], live: Sequence[int], tensor: TensorOf, fuser: Fuser
) -> Sequence[Step | Fused]:
    """Return units of a program with losses in kernels that have more than the loss alone.

    Args:
        units: in the order in which they run.
        live: slots whose values are wanted.
        tensor: slot to what has its dtype and shape.
        fuser: the backend's side.
    """
    if not any(not isinstance(u, Fused) and u.entry.name in fuser.losses for u in units):
        return units
    return _Losses(units, live, tensor, fuser).made()


class _Losses:
    def __init__(
        self, units: Sequence[Step | Fused], live: Sequence[int], tensor: TensorOf, fuser: Fuser
    ) -> None:
        self.units: list[Step | Fused | None] = list(units)
        self.live = frozenset(live)
        self.tensor = tensor
        self.fuser = fuser
        self.maker = {s: k for k, unit in enumerate(units) for s in unit.writes()}
        self.readers: dict[int, list[int]] = {}
        for k, unit in enumerate(units):
            for s in unit.reads():
                self.readers.setdefault(s, []).append(k)

    def made(self) -> list[Step | Fused]:
        """Return the units."""
        losses: dict[Any, int] = {}
        slopes: dict[int, list[int]] = {}
        for k, unit in enumerate(self.units):
            if unit is None or isinstance(unit, Fused):
                continue
            name = unit.entry.name
            if name in self.fuser.losses:
                slopes.setdefault(losses.setdefault((name, tuple(unit.inputs), unit.static), k), [])
            elif name.endswith("_backward"):
                key = (name.removesuffix("_backward"), tuple(unit.inputs[1:]), unit.static)
                if key in losses:
                    slopes[losses[key]].append(k)
        for loss, found in slopes.items():
            self._place(loss, found)
        # What a chain behind a gradient reads may have stood between the two.
        return ordered([unit for unit in self.units if unit is not None])

    def _place(self, k: int, slopes: list[int]) -> None:
        """Put units in the place of a loss and its gradients."""
        loss = self.units[k]
        assert loss is not None and not isinstance(loss, Fused)  # noqa: S101 - a lone step
        forward, backward = self.fuser.losses[loss.entry.name]
        before = self._before(loss, {k, *slopes})
        behind = [self._behind(self.units[b]) for b in slopes]
        if not slopes and before is None:
            return
        kept = KEPT + loss.slot
        begin = partial(forward, keep=bool(slopes))
        self.units[k] = self._unit(begin, loss, [], before, None, [kept] if slopes else [])
        for b, after in zip(slopes, behind, strict=True):
            slope = self.units[b]
            assert slope is not None and not isinstance(slope, Fused)  # noqa: S101 - as above
            self.units[b] = self._unit(backward, slope, [kept], before, after)

    def _before(self, loss: Step, own: set[int]) -> Chain | None:
        """Return the chain that makes the scores for a loss and its gradients alone."""
        scores = loss.inputs[0]
        k = self.maker.get(scores)
        if k is None or scores in self.live or not own.issuperset(self.readers[scores]):
            return None
        if loss.inputs[0] in loss.inputs[1:] or not self._keeps(loss):
            return None
        chain = self._chain(self.units[k], scores)
        # Each walk of a row makes them again.
        if chain is None or any(is_costly(step.entry) for step in chain.steps):
            return None
        self.units[k] = None
        return chain

    def _keeps(self, step: Step) -> bool:
        """Return whether a loss reads its scores in their own dtype."""
        asked = step.static[1]
        return asked is None or asked is self.tensor(step.inputs[-3]).dtype

    def _behind(self, slope: Step | Fused | None) -> Chain | None:
        """Return the chain that alone reads a gradient."""
        assert slope is not None and not isinstance(slope, Fused)  # noqa: S101 - a lone step
        readers = self.readers.get(slope.slot, ())
        if len(readers) != 1 or slope.slot in self.live or not self._keeps(slope):
            return None
        unit = self.units[readers[0]]
        if unit is None or len(unit.writes()) != 1:
            return None
        chain = self._chain(unit, unit.writes()[0])
        if chain is None or chain.given != slope.slot:
            return None
        self.units[readers[0]] = None
        return chain

    def _chain(self, unit: Step | Fused | None, out: int) -> Chain | None:
        """Return what a unit computes as a chain, None where it is none."""
        if unit is None or unit.writes() != [out] or not self.tensor(out).shape:
            return None
        steps = [*unit.numbers, *unit.steps] if isinstance(unit, Fused) else [unit]
        made = {s for step in steps for s in step.writes()}
        outside = dict.fromkeys(s for step in steps for s in step.reads() if s not in made)
        arrays = [s for s in outside if self.tensor(s).shape]
        if len(arrays) != 1 or (isinstance(unit, Fused) and unit.rows):
            return None
        rank = len(self.tensor(out).shape)
        for step in steps:
            if not step.is_number and not (
                is_elementwise(step) and len(self.tensor(step.slot).shape) == rank
                and self.fuser.takes(
                    step.entry, [self.tensor(s).dtype for s in step.reads()],
                    self.tensor(step.slot).dtype,
                )
            ):  # fmt: skip
                return None
        if len(self.tensor(arrays[0]).shape) != rank:
            return None
        return Chain(steps, arrays[0], [out], [s for s in outside if s != arrays[0]])

    def _unit(
        self, function: Any, step: Step, kept: list[int], before: Chain | None,
        after: Chain | None, handed: Sequence[int] = (),
    ) -> Fused:  # fmt: skip
        """Return a step as a unit, with the chains around it and slots of what it hands on."""
        chains = [chain for chain in (before, after) if chain is not None]
        steps = [s for c in chains if c is before for s in c.steps if not s.is_number]
        steps += [step, *[s for c in chains if c is after for s in c.steps if not s.is_number]]
        unit = Fused(steps, [])
        names = {} if before is None else {before.outs[0]: before.given}
        given = [*kept, *[names.get(s, s) for s in step.inputs]]
        there = [slot for slot in given if slot is not None]
        unit.inputs = [*there, *[s for c in chains for s in c.others]]
        unit.outputs = [step.slot if after is None else after.outs[0], *handed]
        unit.run_time = [(step.slot, j) for j in step.run_time()]
        unit.run_time += [place for c in chains for place in c.numbers()]
        groups = [None if c is None else c.group(self.tensor) for c in (before, after)]
        unit.kernel = _called(
            function, [slot is None for slot in given], step.static, len(step.run_time()), groups,
            len(unit.outputs),
        )  # fmt: skip
        return unit


def _called(
    function: Any, absent: Sequence[bool], static: tuple[Any, ...], run_time: int,
    groups: Sequence[Group | None], results: int,
) -> Any:  # fmt: skip
    """Return a function of the inputs that are there, numbers of chains, and run-time values.

    Args:
        function: the backend's.
        absent: which inputs of the step are not there.
        static: its static attributes.
        run_time: how many others it has.
        groups: the chains.
        results: how many are wanted.
    """
    sizes = [(0, 0) if g is None else (len(g.outside), sum(p.numbers for p in g.parts))
             for g in groups]  # fmt: skip
    tensors = sum(n for n, _ in sizes)
    inputs = absent.count(False)

    def called(*args: Any) -> Any:
        given = iter(args[:inputs])
        own = [None if none else next(given) for none in absent]
        late = args[inputs + tensors :]
        others, numbers = iter(args[inputs : inputs + tensors]), iter(late[run_time:])
        chains = [
            None
            if g is None
            else (g, [next(others) for _ in range(n)], [next(numbers) for _ in range(m)])
            for g, (n, m) in zip(groups, sizes, strict=True)
        ]
        made = function(*chains, *own, *static, *late[:run_time])
        return made[:results] if isinstance(made, tuple) else (made,)

    return called
