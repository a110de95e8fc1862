"""Which values of a program have one shape, whatever it is: what can be proved without extents.

A program knows the class of each axis (0, 1, many). Where an elementwise result and its input have
many elements along an axis, they have equally many. The same holds for what reductions of trailing
dims and views of single elements make, so rows of a softmax are known to be the rows of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import CORES
from burn_fusion.segment import axis_classes

if TYPE_CHECKING:
    from burn_fusion.plan import Step

TensorOf = Callable[[int], Any]
Classes = tuple[int, ...]
# A slot, or what stands for a shape that no value has.
Node = Any

# Arrays and operations of one kernel, at most.
MOST_ARRAYS, MOST_PARTS = 24, 160
_ALIKE = ("softmax", "log_softmax", "contiguous")


class Extents:
    """Shapes of a program's values as classes of equals.

    Args:
        steps: the program.
        tensor: slot to what has its dtype and shape.
    """

    def __init__(self, steps: Sequence[Step], tensor: TensorOf) -> None:
        self.tensor = tensor
        self._one: dict[Node, Node] = {}
        # (function, dims) of a shape is a shape: `kept` has 1 in place of the last dims, `cut`
        # goes without them, which are 1, `grown` is that backwards. Negative dims are the first.
        self._facts: dict[tuple[str, int], list[tuple[Node, Node]]] = {}
        self._fresh = 0
        for step in steps:
            self._learn(step)
        self._close()
        self._known = {
            fact: {self.root(a): self.root(b) for a, b in pairs}
            for fact, pairs in self._facts.items()
        }

    def root(self, node: Node) -> Node:
        """Return what stands for all of one shape."""
        one, first = self._one, node
        while (up := one.get(node, node)) != node:
            node = up
        # Whoever asks next has a short way.
        while first != node:
            one[first], first = node, one[first]
        return node

    def classes(self, slot: int) -> Classes:
        """Return the classes of a value's axes."""
        return axis_classes(self.tensor(slot).shape)

    def kept(self, root: Node, dims: int) -> Node:
        """Return the shape with 1 in place of the last dims, None where no value has it.

        Negative dims are the first ones.
        """
        return self._known.get(("kept", dims), {}).get(root)

    def cut(self, root: Node, dims: int) -> Node:
        """Return the shape without the last dims, None where no value has it."""
        kept = self.kept(root, dims)
        return None if kept is None else self._known.get(("cut", dims), {}).get(kept)

    def _same(self, a: Node, b: Node) -> bool:
        """Note that two have one shape; whether that was news."""
        a, b = self.root(a), self.root(b)
        if a == b:
            return False
        self._one[b] = a
        return True

    def _fact(self, name: str, dims: int, a: Node, b: Node) -> None:
        self._facts.setdefault((name, dims), []).append((a, b))
        if name == "cut":
            self._facts.setdefault(("grown", dims), []).append((b, a))

    def _close(self) -> None:
        """Apply that equal shapes have equal images until nothing is new."""
        news = True
        while news:
            news = False
            for pairs in self._facts.values():
                image: dict[Node, Node] = {}
                for a, b in pairs:
                    known = image.setdefault(self.root(a), b)
                    news |= known is not b and self._same(known, b)

    def _learn(self, step: Step) -> None:
        name, out = step.entry.name, step.slot
        if step.is_number or any(isinstance(i, tuple) for i in step.inputs):
            return
        if is_elementwise(step):
            for s in step.reads():
                self._broadcast(s, out)
        elif step.entry.klass == "reduce" and step.outputs == 1:
            dims = reduced_dims(step, self.tensor)
            if dims:
                self._reduced(step.inputs[0], out, dims, step.static[1])
        elif name in ("squeeze", "unsqueeze", "reshape", "expand"):
            self._viewed(step)
        elif name in _ALIKE:
            self._same(out, step.inputs[0])
        elif name in CORES:
            self._same(out, step.inputs[0])
            for kept in step.writes()[1:]:
                self._fact("kept", core_dims(step, self.tensor), out, kept)
        elif name == "gather":
            self._same(out, step.inputs[1])

    def _broadcast(self, s: int, out: int) -> None:
        """Learn from a value that is read along a result."""
        here, there = self.classes(s), self.classes(out)
        if here == there:
            self._same(out, s)
            return
        if len(here) != len(there):
            return
        for dims in range(1, len(here) + 1):
            first = len(here) - dims
            if here[first] != 1:
                break
            if here[:first] == there[:first]:
                self._fact("kept", dims, out, s)
        for dims in range(1, len(here)):
            if here[dims - 1] != 1:
                break
            if here[dims:] == there[dims:]:
                self._fact("kept", -dims, out, s)

    def _reduced(self, x: int, out: int, dims: int, keepdim: bool) -> None:
        if keepdim:
            self._fact("kept", dims, x, out)
            return
        self._fresh += 1
        middle = ("shape", self._fresh)
        self._fact("kept", dims, x, middle)
        self._fact("cut", dims, middle, out)

    def _viewed(self, step: Step) -> None:
        x, out = step.inputs[0], step.slot
        if step.entry.name == "expand":
            self._broadcast(x, out)
            return
        dims, grows = added(step, self.tensor)
        if dims:
            self._fact("cut", dims, *((out, x) if grows else (x, out)))
        elif self.classes(x) == self.classes(out) and _is_line(self.classes(x)):
            self._same(x, out)


def is_elementwise(step: Step) -> bool:
    """Return whether a step computes each element of its result from one of each input."""
    entry = step.entry
    if entry.klass != "map" or entry.multi or step.outputs != 1 or not entry.expr:
        return False
    if any(isinstance(i, tuple) for i in step.inputs) or not step.reads():
        return False
    return all(a.kind in ("static", "scalar") for a in entry.attrs)


def reduced_dims(step: Step, tensor: TensorOf) -> int:
    """Return how many last dims a reduction reduces, negative for first ones; 0 for others."""
    rank = len(tensor(step.inputs[0]).shape)
    names = [a.name for a in step.entry.attrs]
    if names[:2] not in (["dims", "keepdim"], ["dim", "keepdim"]):
        return 0
    dims = step.static[0]
    if dims is None:
        return rank
    gone = tuple(sorted(dims)) if isinstance(dims, tuple) else (dims,)
    if gone == tuple(range(rank - len(gone), rank)):
        return len(gone)
    return -len(gone) if gone == tuple(range(len(gone))) else 0


def core_dims(step: Step, tensor: TensorOf) -> int:
    """Return how many last dims an operation of `CORES` works along, 0 where not along these."""
    rank = len(tensor(step.inputs[0]).shape)
    if step.entry.name in ("softmax", "log_softmax"):
        return int(rank > 0 and step.static[0] == rank - 1)
    dims: int = step.static[0]
    return dims


def added(step: Step, tensor: TensorOf) -> tuple[int, bool]:
    """Return how many last dims of 1 a view adds or takes off, and which; 0 if it does neither.

    Negative dims are first ones.
    """
    here = axis_classes(tensor(step.inputs[0]).shape)
    there = axis_classes(tensor(step.slot).shape)
    grows = len(there) > len(here)
    short, long = (here, there) if grows else (there, here)
    dims = len(long) - len(short)
    if not dims or (step.entry.name == "reshape" and not _is_line(short)):
        return 0, grows
    ones, named = (1,) * dims, None
    if step.entry.name in ("squeeze", "unsqueeze"):
        named = tuple(sorted(step.static[0]))
    if long == short + ones and named in (None, tuple(range(len(short), len(long)))):
        return dims, grows
    if long == ones + short and named in (None, tuple(range(dims))):
        return -dims, grows
    return 0, grows


def _is_line(classes: Classes) -> bool:
    """Return whether one dim at most has many elements, so that a reshape has to keep it."""
    return 0 not in classes and classes.count(2) <= 1
