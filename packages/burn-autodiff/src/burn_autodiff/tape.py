"""The tape: nodes made during the forward, walked in descending order of creation.

A node points to the nodes of its inputs and to saved payloads, tensors point to their node, so
there are no cycles and dropping a loss frees everything. Consumers are always younger than
producers, so a heap by sequence number is a topological order and no search comes before it; a
rule may even create younger nodes while the walk runs (that is how checkpoints work).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from burn_autodiff.windows import Window, Windows, place_of
from burn_backend import TENSOR_CLASS, TensorBase
from burn_ir import Entry
from burn_std import ArgumentError, AutodiffError, BurnError, DeviceError, ShapeError

count = itertools.count(1).__next__


class Call:
    """What all nodes of one generated function share.

    Attributes:
        kind: `rule`, `leaf`, `pick`, `moved` or `checkpoint`.
        entry: the operation, for `rule`.
        fn: the backward rule.
        saves: one getter per saved value: (is_output, position).
        readers: per saved value the inputs whose gradient reads it; empty means any.
        context: the context whose function made the node.
        lists: an input is a list of tensors.
        plain: a rule whose node has one output, tensors as inputs and no recipe.
        straight: the rule as the straight path calls it, which may be native.
        ops: the context of the gradients where they are not tracked; None until one was computed.
    """

    __slots__ = (
        "__weakref__", "context", "entry", "fn", "kind", "lists", "ops", "plain", "readers",
        "saves", "straight",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        entry: Entry | None = None,
        fn: Callable[..., Any] | None = None,
        saves: tuple[tuple[bool, int], ...] = (),
        readers: tuple[tuple[int, ...], ...] = (),
        context: Any = None,
    ) -> None:
        self.kind = kind
        self.entry = entry
        self.fn = self.straight = fn
        self.saves = saves
        self.readers = readers
        self.context = context
        self.lists = entry is not None and any(i.many for i in entry.inputs)
        # Nodes of the balanced strategy have a recipe, and are restored.
        whole = getattr(context, "checkpointing", False)
        one = entry is not None and not self.lists and not entry.multi
        # Gradients of parts of a tensor are joined once all are there.
        part = entry is not None and entry.name in ("slice", "select")
        self.plain = kind == "rule" and one and not whole and not part
        self.ops: Any = None

    def plain_ops(self) -> Any:
        """Return the context without autodiff, which gradients are computed in."""
        self.ops = ops = self.context.base.resource.plain_context()
        return ops

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.entry.name if self.entry is not None else self.kind


class Node:
    """One operation without attributes on the tape, or what all nodes have.

    Attributes:
        call: what it shares with others of its function.
        seq: process-wide creation number.
        parents: node or None per input; a list of them for a list input.
        saved: payloads the rule reads; FREED once used.
        attrs: attributes of the call.
        shapes: shape per input; None when each is the output's.
        dtype: payload dtype of the promoted input.
        recipe: how to recompute the output, see `checkpoint`; None but on a `RecomputedNode`.
    """

    __slots__ = (
        "__weakref__",
        "call",
        "dtype",
        "parents",
        "saved",
        "seq",
        "shapes",
    )

    call: Call
    seq: int
    parents: Sequence[Any]
    saved: Any
    shapes: tuple[Any, ...] | None
    dtype: Any
    # No slots: setting these on every node of every operation would cost what nobody reads.
    attrs: tuple[Any, ...] = ()
    recipe: Any = None

    def __repr__(self) -> str:
        return f"<node {self.call.name} #{self.seq}>"


class AttrNode(Node):
    """An operation with attributes on the tape."""

    __slots__ = ("attrs",)

    attrs: tuple[Any, ...]


class RecomputedNode(AttrNode):
    """A node of the balanced strategy."""

    __slots__ = ("recipe",)


class _Freed:
    def __repr__(self) -> str:
        return "freed"


FREED = _Freed()
LEAF = Call("leaf")
PICK = Call("pick")


def make_node(
    call: Call,
    parents: Sequence[Any],
    saved: Any,
    attrs: tuple[Any, ...] = (),
    shapes: Any = (),
    kind: type[AttrNode] = AttrNode,
) -> Node:
    """Return a node; generated functions write the same lines inline."""
    n = kind()
    n.call = call
    n.seq = count()
    n.parents = parents
    n.saved = saved
    n.attrs = attrs
    n.shapes = shapes
    n.dtype = None
    return n


class Gradients:
    """The result of a backward pass: gradients by leaf, as a value of its own.

    Read with `w.grad(grads)`. An optimizer takes gradients out of it.
    """

    __slots__ = ("_by_node", "_taken")

    def __init__(self, by_node: dict[Node, TensorBase]) -> None:
        self._by_node = by_node
        self._taken: set[int] = set()

    def get(self, x: TensorBase) -> TensorBase | None:
        """Return the gradient of a leaf, or None when the backward did not reach it.

        Raises:
            AutodiffError: an optimizer took it.
        """
        node = x.node
        if node is None:
            return None
        found = self._by_node.get(node)
        if found is None and node.seq in self._taken:
            raise AutodiffError(
                "grad", "the optimizer took this gradient", remedy="Pass keep=True to step."
            )
        return found

    def take(self, x: TensorBase) -> TensorBase | None:
        """Return the gradient of a leaf and forget it."""
        node = x.node
        found = None if node is None else self._by_node.pop(node, None)
        if found is None:
            return self.get(x)
        self._taken.add(node.seq)
        return found

    def set(self, x: TensorBase, gradient: TensorBase) -> None:
        """Put a gradient in the place of a leaf's own (clipping, accumulation)."""
        if x.node is None:
            raise AutodiffError("grad", "only a tracked tensor has a gradient", got=x.b.device)
        if gradient.shape != x.shape:
            raise ShapeError(
                "grad", "a gradient has the tensor's shape", got=f"{gradient.shape} for {x.shape}"
            )
        if gradient.b.resource is not x.b.resource:
            raise DeviceError(
                "grad", "a gradient is on the tensor's device",
                got=f"{gradient.b.device} for {x.b.device}",
                remedy="Move it with .to_device(device).",
            )  # fmt: skip
        self._by_node[x.node] = gradient

    def __contains__(self, x: object) -> bool:
        return isinstance(x, TensorBase) and x.node in self._by_node

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> Iterator[TensorBase]:
        return iter(self._by_node.values())

    def __repr__(self) -> str:
        return f"<gradients of {len(self)} tensors>"


class RuleCall:
    """What a rule sees besides the cotangent and what it saved; see docs/design-notes."""

    __slots__ = ("create_graph", "need", "node", "ops", "shapes")

    ops: Any
    node: Node
    shapes: tuple[Any, ...]
    create_graph: bool
    need: tuple[Any, ...]

    @property
    def attrs(self) -> tuple[Any, ...]:
        """Attributes of the call."""
        return self.node.attrs

    @property
    def dtypes(self) -> tuple[Any, ...]:
        """Dtype per input, as promoted."""
        d = self.ops.dtypes[self.node.dtype]
        return (d,) * len(self.shapes)


def _rule_call(ops: Any, node: Node, shapes: tuple[Any, ...], create_graph: bool) -> RuleCall:
    # No `__init__`: the straight path sets these itself.
    made = RuleCall()
    made.ops = ops
    made.node = node
    made.shapes = shapes
    made.create_graph = create_graph
    made.need = tuple(
        [
            tuple([e is not None for e in p]) if isinstance(p, list) else p is not None
            for p in node.parents
        ]
    )
    return made


def sum_to(ops: Any, g: TensorBase, shape: tuple[int, ...]) -> TensorBase:
    """Return g summed over the dims along which the input was broadcast."""
    lead = len(g.shape) - len(shape)
    if lead > 0 and g.shape[lead:] == shape:
        return ops.sum(g, tuple(range(lead)), False, None)  # type: ignore[no-any-return]
    dims = tuple(range(lead)) + tuple(
        i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1
    )
    if lead >= 0 and dims:
        g = ops.sum(g, dims, True, None)
    if g.shape != shape:
        g = ops.reshape(g, shape)
    return g


class Walk:
    """One backward pass.

    Attributes:
        retain: nodes keep what they saved; `frees` that they do not.
        create: the gradients are tracked.
        wanted: nodes that are no leaves whose cotangent is kept.
        cotangents: by node that was not walked yet.
        heap: those nodes, the youngest first.
        found: the gradients so far.
        at: what the straight path calls a rule of, for messages.
    """

    __slots__ = ("at", "cotangents", "create", "found", "frees", "heap", "retain", "wanted")

    def __init__(self, retain: bool, create: bool, wanted: set[Node]) -> None:
        self.retain = retain
        self.frees = not retain
        self.create = create
        self.wanted = wanted
        self.cotangents: dict[Node, Any] = {}
        self.heap: list[tuple[int, Node]] = []
        self.found: dict[Node, TensorBase] = {}
        self.at: Call | None = None

    def put(self, node: Node, g: TensorBase) -> None:
        """Note a cotangent of a node's output."""
        have = self.cotangents.get(node)
        if have is None:
            self.cotangents[node] = g
            heapq.heappush(self.heap, (-node.seq, node))
        elif have.__class__ is Windows:
            have.add(g)
        else:
            self.cotangents[node] = g.b.add(have, g)

    def put_window(self, ops: Any, node: Node, shape: tuple[int, ...], part: Window) -> None:
        """Note the cotangent of a part of a node's output."""
        have = self.cotangents.get(node)
        if have.__class__ is Windows:
            have.parts.append(part)
            return
        made = self.cotangents[node] = Windows(ops, shape, part)
        if have is None:
            heapq.heappush(self.heap, (-node.seq, node))
        else:
            made.add(have)

    def put_output(self, pick: Node, g: TensorBase) -> None:
        """Note the cotangent of one output of a node with several."""
        main = pick.parents[0]
        have = self.cotangents.get(main)
        if have is None:
            have = self.cotangents[main] = {}
            heapq.heappush(self.heap, (-main.seq, main))
        # An output that the rule saved has a pick of its own beside the one of the user's tensor.
        earlier = have.get(pick.attrs[0])
        have[pick.attrs[0]] = g if earlier is None else g.b.add(earlier, g)

    def run(self) -> dict[Node, TensorBase]:
        """Walk to the end and return the gradients."""
        straight = None if self.create or self.wanted else STRAIGHT.now()
        while True:
            node = self.next(straight)
            if node is None:
                return self.found
            g = self.cotangents.pop(node)
            if g.__class__ is Windows:
                g = g.total()
            call = node.call
            if call is LEAF:
                self.found[node] = g
                continue
            if node in self.wanted:
                self.found[node] = g
            if call is PICK:
                self.put_output(node, g)
                continue
            if node.saved is FREED:
                raise AutodiffError(
                    call.name, "this part of the graph was freed by an earlier backward",
                    remedy="Pass retain_graph=True to the first backward.",
                )  # fmt: skip
            if call.kind == "rule":
                self.apply(node, g)
            else:
                assert call.fn is not None  # noqa: S101 - every other kind brings its function
                call.fn(self, node, g)
            if not self.retain:
                node.saved = FREED
                node.parents = ()
                if node.recipe is not None:
                    node.recipe = None

    def next(self, straight: Callable[[Walk], Node | None] | None) -> Node | None:
        """Return the youngest node that the straight path leaves; None at the end."""
        if straight is None:
            return heapq.heappop(self.heap)[1] if self.heap else None
        try:
            return straight(self)
        except BurnError as error:
            if self.at is not None:
                error.add_note(f"in the backward of {self.at.name}")
            raise

    def apply(self, node: Node, g: Any) -> None:
        """Call the rule of a node and note what it gives."""
        call = node.call
        entry = call.entry
        assert entry is not None and call.fn is not None  # noqa: S101 - kind is `rule`
        context = call.context.base
        if self.create:
            if not entry.closed:
                raise AutodiffError(
                    entry.name, "its gradient cannot be differentiated again",
                    remedy="Call backward with create_graph=False.",
                )  # fmt: skip
            ops = context
        else:
            ops = context.resource.plain_context()
        shapes = node.shapes
        if shapes is None:
            shapes = (g.shape,) * len(node.parents)
        if isinstance(g, dict):
            g = tuple(g.get(k) for k in range(max(len(entry.outputs), max(g) + 1)))
        if self.create or call.lists or node.recipe is not None:
            saved = [
                self.restore(node, s, get, ops)
                for s, get in zip(node.saved, call.saves, strict=True)
            ]
        else:
            make = ops.make
            saved = [None if s is None else make(s) for s in node.saved]
        seen = _rule_call(ops, node, shapes, self.create)
        if entry.name in ("slice", "select") and node.parents[0] is not None:
            place = place_of(entry.name, node.attrs, shapes[0])
            if place is not None:
                part = Window(*place, g, entry.name == "select", partial(call.fn, seen, g))
                self.put_window(ops, node.parents[0], shapes[0], part)
                return
        try:
            out = call.fn(seen, g, *saved)
        except BurnError as error:
            error.add_note(f"in the backward of {entry.name}")
            raise
        out = gradients_of(call, out, node.parents)
        for parent, grad, shape in zip(node.parents, out, shapes, strict=False):
            if parent is None or grad is None:
                continue
            if parent.__class__ is list:
                for p, e, s in zip(parent, grad, shape, strict=True):
                    self.give(ops, p, e, s)
            elif grad.v.shape == shape:
                self.put(parent, grad)
            else:
                self.put(parent, sum_to(ops, grad, shape))

    def give(self, ops: Any, parent: Node | None, grad: TensorBase | None, shape: Any) -> None:
        """Note a cotangent, summed where the input was broadcast."""
        if parent is not None and grad is not None:
            self.put(parent, grad if grad.shape == shape else sum_to(ops, grad, shape))

    def restore(self, node: Node, payload: Any, get: tuple[bool, int], ops: Any) -> Any:
        """Return a saved payload as a tensor; tracked when a graph is being made."""
        is_output, position = get
        if payload is None:
            return None
        parent = node if is_output else node.parents[position]
        if isinstance(payload, tuple):
            nodes = parent if isinstance(parent, list) else [None] * len(payload)
            return [
                ops.make(p, n if self.create else None) for p, n in zip(payload, nodes, strict=True)
            ]
        if node.recipe is not None:
            payload = node.recipe.value(node, payload, is_output, position)
        if self.create and is_output and node.call.entry is not None and node.call.entry.multi:
            parent = _pick(node, position)
        return ops.make(payload, parent if self.create else None)


class Straight:
    """The straight path of a walk; see `walking`."""

    __slots__ = ("compiled", "tensor", "walked")

    def __init__(self) -> None:
        self.tensor: type | None = None
        self.compiled: Callable[..., Any] | None = None
        self.walked: Callable[[Walk], Node | None] | None = None

    def now(self) -> Callable[[Walk], Node | None]:
        """Return it for the class that tensors have now."""
        if self.walked is None or self.tensor is not TENSOR_CLASS.cls:
            from burn_autodiff.walking import walking

            self.walked = walking()
            self.tensor = TENSOR_CLASS.cls
            if self.compiled is not None:
                self.walked = self.compiled(self.walked, False, _SLOTTED)
        return self.walked

    def natively(self, compiled: Callable[..., Any]) -> None:
        """Have it compiled, once."""
        if self.compiled is None:
            self.compiled, self.walked = compiled, None


STRAIGHT = Straight()
_SLOTTED = (Node, Call, RuleCall, Walk, TensorBase)


def gradients_of(call: Call, out: Any, parents: Sequence[Any]) -> Any:
    """Return what a rule gave as a tuple with one gradient per input."""
    if out.__class__ is not tuple and (isinstance(out, TensorBase) or out is None):
        out = (out,)
    if len(out) != len(parents):
        raise AutodiffError(
            call.name, "a rule gives one gradient per input",
            got=f"{len(out)} for {len(parents)}",
        )  # fmt: skip
    return out


def _pick(main: Node, k: int) -> Node:
    return make_node(PICK, (main,), (), (k,))


def backward(
    outputs: Sequence[TensorBase],
    cotangents: Sequence[TensorBase | None],
    retain_graph: bool = False,
    create_graph: bool = False,
    wanted: Sequence[TensorBase] = (),
) -> Gradients:
    """Return the gradients of `outputs` with respect to every leaf they depend on.

    Args:
        outputs: tracked tensors.
        cotangents: one per output; None means 1 and needs a tensor of one element.
        retain_graph: keep what the nodes saved, for another backward.
        create_graph: track the gradients themselves, for higher orders; implies retain_graph.
        wanted: tensors that are no leaves whose gradient is kept too.

    Raises:
        AutodiffError: an output is untracked, the graph was freed, or an operation on the way is
            not closed under differentiation.
        ShapeError: a cotangent has another shape than its output.
    """
    walk = Walk(
        retain_graph or create_graph, create_graph, {w.node for w in wanted if w.node is not None}
    )
    if len(outputs) != len(cotangents):
        raise ArgumentError(
            "backward", "one cotangent per output", got=f"{len(cotangents)} for {len(outputs)}"
        )
    for y, g in zip(outputs, cotangents, strict=True):
        if y.node is None:
            raise AutodiffError(
                "backward",
                "the tensor is not tracked",
                got=f"{y.dtype.name}{list(y.shape)} on {y.b.device}",
                remedy="It must depend on a tensor of an autodiff device marked by require_grad() "
                "and not frozen, outside no_grad.",
            )
        if g is None:
            if y.shape and any(n != 1 for n in y.shape):
                raise AutodiffError(
                    "backward",
                    "only a tensor of one element has an implicit cotangent",
                    got=f"shape {y.shape}",
                    remedy="Reduce it to a loss, or pass cotangent=.",
                )
            plain = y.b.resource.plain_context()
            g = plain.full(y.dtype, y.shape, 1.0)
        elif g.shape != y.shape:
            raise ShapeError(
                "backward", "a cotangent has its output's shape", got=f"{g.shape} for {y.shape}"
            )
        elif g.dtype is not y.dtype:
            g = g.b.cast(g, y.dtype)
        if not create_graph and g.b.is_autodiff:
            g = g.b.resource.plain_context().make(g.v)
        walk.put(y.node, g)
    return Gradients(walk.run())
