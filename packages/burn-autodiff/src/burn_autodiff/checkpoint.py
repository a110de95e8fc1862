"""Recomputation instead of memory: `checkpoint(fn)` and the balanced strategy.

A checkpointed call keeps its arguments only; the walk runs it again, tracked, with the random
counters of the forward, and goes on through the younger nodes this makes.

Under the balanced strategy the output of a memory-bound operation is not saved by its consumers.
They note that they will ask for it; the first to ask recomputes it from inputs that are kept
(leaves, constants, outputs of compute-bound operations) or recomputed likewise, the last lets go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from burn_autodiff.tape import Call, Node, RecomputedNode, _pick, make_node
from burn_backend import TensorBase
from burn_ir import Entry
from burn_std import AutodiffError

LAZY = object()


def recomputable(entry: Entry) -> bool:
    """Return whether the balanced strategy recomputes outputs of this operation."""
    return (
        entry.cost == "memory"
        and not entry.multi
        and entry.klass in ("map", "view", "reduce", "index")
    )


class Recipe:
    """How to get a node's saved values back.

    Attributes:
        inputs: payloads of inputs that are kept; LAZY where the parent recomputes.
        output: the cached output while consumers still ask for it.
        uses: consumers that will ask.
        runs: how often the output was recomputed, for tests.
    """

    __slots__ = ("can", "inputs", "output", "runs", "uses")

    def __init__(self, can: bool, inputs: list[Any]) -> None:
        self.can = can
        self.inputs = inputs
        self.output: Any = None
        self.uses = 0
        self.runs = 0

    def value(self, node: Node, payload: Any, is_output: bool, position: int) -> Any:
        """Return a saved payload of `node`, recomputing it if it was left out."""
        if payload is not LAZY:
            return payload
        return ask(node if is_output else node.parents[position])


def ask(node: Node) -> Any:
    """Return the output of a recomputable node; iterative, so depth does not matter."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top.recipe.output is not None:
            stack.pop()
            continue
        waiting = [
            p for p, v in zip(top.parents, top.recipe.inputs, strict=True)
            if v is LAZY and p.recipe.output is None
        ]  # fmt: skip
        if waiting:
            stack += waiting
            continue
        _recompute(top)
        stack.pop()
    return _release(node)


def _recompute(node: Node) -> None:
    plain = node.call.context.base.resource.plain_context()
    entry = node.call.entry
    assert entry is not None  # noqa: S101 - only operations have recipes
    args = []
    for parent, v in zip(node.parents, node.recipe.inputs, strict=True):
        payload = _release(parent) if v is LAZY else v
        args.append(None if payload is None else plain.make(payload))
    node.recipe.output = getattr(plain, entry.name)(*args, *node.attrs).v
    node.recipe.runs += 1


def _release(node: Node) -> Any:
    recipe = node.recipe
    value = recipe.output
    recipe.uses -= 1
    if recipe.uses <= 0:
        recipe.output = None
    return value


def balanced_node(
    call: Call,
    parents: tuple[Any, ...],
    payloads: tuple[Any, ...],
    output: Any,
    attrs: tuple[Any, ...],
    shapes: Any,
    dtype: Any,
) -> Node:
    """Return the node of an operation under the balanced strategy."""
    node = make_node(call, parents, (), attrs, shapes, RecomputedNode)
    node.dtype = dtype
    entry = call.entry
    assert entry is not None  # noqa: S101 - made for operations only
    can = recomputable(entry) and not any(isinstance(p, list) for p in parents)

    def keep(position: int) -> Any:
        parent = parents[position]
        payload = payloads[position]
        if isinstance(parent, list):
            return tuple(payload)
        lazy = parent is not None and parent.recipe is not None and parent.recipe.can
        return LAZY if lazy else payload

    node.recipe = Recipe(can, [keep(i) for i in range(len(parents))] if can else [])
    saved: list[Any] = []
    for (is_output, position), readers in zip(call.saves, call.readers, strict=True):
        if readers and all(parents[r] is None for r in readers):
            value = None
        elif is_output:
            value = LAZY if can else output[position] if entry.multi else output
        else:
            value = keep(position)
        if value is LAZY:
            _claim(node if is_output else parents[position])
        saved.append(value)
    node.saved = tuple(saved)
    return node


def _claim(node: Node) -> None:
    """Note that a consumer will ask for a node's output.

    The first claim makes the node a consumer of its own inputs, since it will be recomputed once.
    """
    stack = [node]
    while stack:
        top = stack.pop()
        top.recipe.uses += 1
        if top.recipe.uses == 1:
            inputs = zip(top.parents, top.recipe.inputs, strict=True)
            stack += [p for p, v in inputs if v is LAZY]


class _State:
    """What a checkpointed call needs to run again."""

    __slots__ = ("args", "context", "fn", "kwargs", "outputs", "random")

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, random: Any, outputs: int
    ) -> None:
        # Autocast, training behaviour and default device of the forward hold in the recompute too.
        self.context = copy_context()
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.random = random
        self.outputs = outputs


def run(
    scope: Callable[..., Any], fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Run `fn` untracked and return its tensors with a node that runs it again.

    Args:
        scope: `burn_dispatch.scope`, handed in because this package lies below it.
        fn: a function of tensors that returns a tensor or a tuple of tensors.
        args: positional arguments; tensors among them are kept.
        kwargs: keyword arguments.
    """
    tensors = [a for a in [*args, *kwargs.values()] if isinstance(a, TensorBase)]
    contexts = [t.b for t in tensors if t.b.is_autodiff]
    resources = {id(t.b.resource): t.b.resource for t in tensors}
    random = [(r, r.random_state()) for r in resources.values()]
    if not contexts:
        return fn(*args, **kwargs)
    with scope(no_grad=True, checkpoint=True):
        out = fn(*args, **kwargs)
    many = isinstance(out, (tuple, list))
    outs = list(out) if many else [out]
    if not all(isinstance(o, TensorBase) for o in outs):
        raise AutodiffError(
            "checkpoint", "the function must return tensors", got=[type(o).__name__ for o in outs]
        )
    call = Call(
        "checkpoint", fn=lambda walk, node, g: _again(scope, walk, node, g), context=contexts[0]
    )
    main = make_node(call, (), _State(fn, tuple(args), dict(kwargs), random, len(outs)))
    made = []
    for k, o in enumerate(outs):
        context = o.b if o.b.is_autodiff else contexts[0]
        made.append(context.make(o.v, _pick(main, k) if o.dtype.is_float else None))
    return tuple(made) if many else made[0]


def _again(scope: Callable[..., Any], walk: Any, node: Node, g: dict[int, TensorBase]) -> None:
    state: _State = node.saved
    now = [(r, r.random_state()) for r, _ in state.random]
    for r, s in state.random:
        r.set_random_state(s)

    def run_again() -> Any:
        with scope(no_grad=False, recompute=True):
            return state.fn(*state.args, **state.kwargs)

    try:
        # A copy, since a context that is entered already (a second walk) refuses.
        out = state.context.copy().run(run_again)
    finally:
        for r, s in now:
            r.set_random_state(s)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    for k, cotangent in g.items():
        if outs[k].node is not None:
            walk.put(outs[k].node, cotangent)
