"""The autodiff decorator: fragments that put a node on the tape, and what devices ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

from burn_autodiff import checkpoint as ckpt, tape
from burn_autodiff.rules import RULES
from burn_autodiff.tape import LEAF, PICK, AttrNode, Call, Gradients, Node, RuleCall, make_node
from burn_backend import API_VERSION, Fragments, TensorBase
from burn_ir import Entry
from burn_std import AutodiffError


class AutodiffDecorator:
    """Entry point `autodiff` of `burn.decorators`."""

    name = "autodiff"
    api_version = API_VERSION
    about = "gradient tape over any backend"

    def __init__(self) -> None:
        # Rules by operation: what was compiled, and what may call it.
        self._native: dict[str, Callable[..., Any]] = {}
        self._calls: dict[str, WeakSet[Call]] = {}

    def natively(self, compiled: Callable[..., Any], names: Iterable[str]) -> None:
        """Have the walk and the rules of some operations compiled.

        Args:
            compiled: see `Backend.compiled`.
            names: of operations that come again and again.
        """
        tape.STRAIGHT.natively(compiled)
        for name in names:
            rule = RULES.get(name)
            if rule is None or name in self._native:
                continue
            made = self._native[name] = compiled(rule.fn, False, (RuleCall, TensorBase))
            for call in self._calls.get(name, ()):
                call.straight = made

    # ---- generated functions ----------------------------------------------------------------

    def fragments(self, entry: Entry, inner: Fragments, context: Any) -> Fragments:
        """Return the inner fragments plus what reads nodes and puts one on the tape."""
        if not entry.differentiable or not entry.inputs:
            return inner
        rule = RULES.get(entry.name)
        load = {i.name: [*inner.load.get(i.name, []), _node_of(i)] for i in entry.inputs}
        absent = {
            i.name: [*inner.else_load.get(i.name, []), f"{i.name}_n = None"] for i in entry.inputs
        }
        untracked = " and ".join(_untracked(i) for i in entry.inputs)
        constants = dict(inner.constants)
        if rule is None:
            constants["TRACED"] = _traced(entry, context)
            args = ", ".join([i.name for i in entry.inputs] + [a.name for a in entry.attrs])
            produce = [f"if not ({untracked}): return TRACED({args})", *inner.produce]
            return Fragments(produce, constants, load, absent, inner.finish, inner.shapes)
        saves = tuple(_position(entry, s) for s in rule.saves)
        readers = tuple(tuple(_position(entry, r)[1] for r in names) for names in rule.readers)
        call = Call("rule", entry, rule.fn, saves, readers, context)
        call.straight = self._native.get(entry.name, rule.fn)
        self._calls.setdefault(entry.name, WeakSet()).add(call)
        constants.update(
            CALL=call,
            NODE=Node, ATTR_NODE=AttrNode, COUNT=tape.count, PICK=PICK,
            FLOATS={k for k, d in context.dtypes.items() if d.is_float},
        )  # fmt: skip
        if context.checkpointing:
            constants["BALANCED"] = ckpt.balanced_node
        finish = [
            *inner.finish,
            *_finish(entry, saves, readers, untracked, context.checkpointing, inner.shapes),
        ]
        return Fragments(inner.produce, constants, load, absent, finish, inner.shapes)

    def rule_of(self, name: str) -> Callable[..., Any] | None:
        """Return the backward rule of an operation, or None when it is differentiated in parts.

        Example:
            >>> decorator.rule_of("mul").__name__
            'mul'
        """
        found = RULES.get(name)
        return None if found is None else found.fn

    # ---- what the user's calls need -----------------------------------------------------------

    def leaf(self, x: TensorBase) -> TensorBase:
        """Return x as a marked leaf.

        Raises:
            AutodiffError: x is an intermediate result, or no float tensor.
        """
        if x.node is not None:
            if x.node.call is LEAF:
                return x
            raise AutodiffError(
                "require_grad", "only a leaf can be marked; this is the result of an operation",
                remedy="Write x.detach().require_grad().",
            )  # fmt: skip
        if not x.dtype.is_float:
            raise AutodiffError(
                "require_grad", "only float tensors have gradients", got=x.dtype.name
            )
        x = x.b.make(x.v)
        x.node = self.leaf_node()
        return x

    def leaf_node(self) -> Node:
        """Return the node of a new leaf; a parameter keeps one for life."""
        return make_node(LEAF, (), ())

    def is_leaf(self, x: TensorBase) -> bool:
        """Return whether x is a marked leaf."""
        return x.node is not None and x.node.call is LEAF

    def backward(
        self, outputs: Sequence[TensorBase], cotangents: Sequence[TensorBase | None],
        retain_graph: bool = False, create_graph: bool = False, wanted: Sequence[TensorBase] = (),
    ) -> Gradients:  # fmt: skip
        """Return the gradients of outputs; see `burn_autodiff.tape.backward`."""
        return tape.backward(outputs, cotangents, retain_graph, create_graph, wanted)

    def checkpoint(
        self, scope: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Run a function whose inner values are recomputed in the backward."""
        return ckpt.run(scope, fn, args, kwargs)

    def holdings(self, objects: Iterable[Any]) -> Iterator[tuple[str, str, Any, Any]]:
        """Yield what of some objects holds values for gradients.

        Args:
            objects: any; those of the process, say.

        Returns:
            Kind (`gradient` or `saved`), the operation, a payload, and the tensor or node.
        """
        for x in objects:
            kind = type(x)
            if kind is Gradients:
                yield from (("gradient", "", t.v, t) for t in x)
            elif issubclass(kind, Node) and x.call.context is not None:
                saved = x.saved if isinstance(x.saved, (tuple, list)) else (x.saved,)
                for part in saved:
                    parts = part if isinstance(part, (tuple, list)) else (part,)
                    values = (v for v in parts if hasattr(v, "shape") and hasattr(v, "dtype"))
                    yield from (("saved", x.call.name, v, x) for v in values)

    def moved(self, x: TensorBase, target: Any) -> Node:
        """Return the node of a copy of x on another resource."""
        return make_node(Call("moved", fn=_move_back, context=target), (x.node,), (x.b,))


def _move_back(walk: Any, node: Node, g: TensorBase) -> None:
    source = node.saved[0]
    here = g.b.resource.backend
    back = source if walk.create else source.resource.plain_context()
    moved = back.make(source.resource.backend.from_numpy(here.to_numpy(g.v), True))
    if walk.create and g.node is not None:
        moved.node = decorator.moved(g, source)
    walk.put(node.parents[0], moved)


def _node_of(i: Any) -> str:
    if i.many:
        return f"{i.name}_n = [e_.node for e_ in {i.name}]"
    return f"{i.name}_n = {i.name}.node"


def _untracked(i: Any) -> str:
    n = f"{i.name}_n"
    return f"{n}.count(None) == len({n})" if i.many else f"{n} is None"


def _position(entry: Entry, name: str) -> tuple[bool, int]:
    for k, i in enumerate(entry.inputs):
        if i.name == name:
            return False, k
    return True, entry.outputs.index(name)


def _payload(entry: Entry, get: tuple[bool, int], readers: tuple[int, ...]) -> str:
    is_output, k = get
    if is_output:
        text = f"r_[{k}]" if entry.multi else "r_"
    else:
        i = entry.inputs[k]
        text = f"tuple({i.name}_v)" if i.many else f"{i.name}_v"
    if readers:  # what only an unwanted gradient would read is not kept alive
        wanted = " or ".join(f"{entry.inputs[r].name}_n is not None" for r in readers)
        text = f"({text} if {wanted} else None)"
    return text


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"


def _finish(
    entry: Entry,
    saves: tuple[tuple[bool, int], ...],
    readers: tuple[tuple[int, ...], ...],
    untracked: str,
    balanced: bool,
    shapes: str | None,
) -> list[str]:
    parents = _tuple([f"{i.name}_n" for i in entry.inputs])
    shapes = shapes or _tuple([_shape(i) for i in entry.inputs])
    attrs = _tuple([a.name for a in entry.attrs])
    kind = "ATTR_NODE" if entry.attrs else "NODE"
    if balanced:
        payloads = _tuple([f"{i.name}_v" for i in entry.inputs])
        make = [f"node_ = BALANCED(CALL, {parents}, {payloads}, r_, {attrs}, {shapes}, d_)"]
    else:
        saved = _tuple([_payload(entry, s, r) for s, r in zip(saves, readers, strict=True)])
        make = [
            f"node_ = {kind}(); node_.call = CALL; node_.seq = COUNT(); node_.dtype = d_",
            f"node_.parents = {parents}; node_.saved = {saved}; node_.shapes = {shapes}",
        ]
        if entry.attrs:
            make.append(f"node_.attrs = {attrs}")
    if entry.multi:
        return [
            f"if not ({untracked}):",
            *(f"    {m}" for m in make),
            "    for k_, t_ in enumerate(ts_):",
            "        if t_.v.dtype in FLOATS:",
            "            p_ = ATTR_NODE(); p_.call = PICK; p_.seq = COUNT(); p_.parents = (node_,)",
            "            p_.saved = (); p_.attrs = (k_,); p_.shapes = (); p_.dtype = d_",
            "            t_.node = p_",
        ]
    if entry.name == "cast":
        untracked = f"{untracked} or r_.dtype not in FLOATS"
    return [
        f"if {untracked}: t_.node = None",
        "else:",
        *(f"    {m}" for m in make),
        "    t_.node = node_",
    ]


def _shape(i: Any) -> str:
    v = f"{i.name}_v"
    if i.many:
        return f"[e_.shape for e_ in {v}]"
    return f"(None if {v} is None else {v}.shape)" if i.optional else f"{v}.shape"


def _traced(entry: Entry, context: Any) -> Callable[..., Any]:
    """Return what a tracked call of an operation without a rule does: decompose and trace."""
    if entry.decompose is not None:
        decompose = entry.decompose
        return lambda *args: decompose(context, *args)

    def refuse(*args: Any) -> Any:
        raise AutodiffError(
            entry.name, "has neither a backward rule nor a decomposition",
            remedy="Register one with burn_autodiff.rule at the start, or detach the inputs.",
        )  # fmt: skip

    return refuse


decorator = AutodiffDecorator()
