"""What an operation is: one slotted object per entry, and the registry that holds them all.

An entry says everything that only forwards: dispatch, recording, capture, remote, the wire form,
the null backend, the conformance matrix and the docs table are derived from it.

Signatures are written in a small language, so that an entry fits on a few lines:

    inputs  "x y"       two tensors
            "x~"        joins the promotion of this call; a Python scalar may stand here
            "x^"        joins the promotion of this call; a tensor only
            "bias?"     optional, also "min~?" and "bias^?"
            "xs*"       a list of tensors, also "xs^*"
            "weight!"   a quantised tensor, which is not dequantised before
    attrs   "dims"      static: part of the program, changes the kernel (hashable)
            "shape#"    extent: run-time value that the shape rule reads (ints, tuples of ints)
            "alpha@"    scalar: run-time value that changes values only

Attributes are declared in the order static, extents, scalars, and every function of the operation
(generated function, shape rule, kernel, backward rule, decomposition) takes inputs, then
attributes, positionally in this order; the shape rule alone does not get the scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Literal

from burn_std import (
    ArgumentError,
    DType,
    DTypeError,
    GraphError,
    ShapeError,
    dtype_remedy,
    load_object,
    nearest,
)

Klass = Literal[
    "map", "reduce", "contract", "view", "index", "random", "dynamic", "opaque", "effect"
]
Grade = Literal["core", "optional", "derived"]
Autocast = Literal["lower", "f32", "wide", "follow"]


class Spec:
    """Shape and dtype of one tensor, as the rules see it.

    Attributes:
        shape: extents.
        dtype: element type.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


class Input:
    """One tensor input of a signature.

    Attributes:
        name: its name.
        optional: None may stand here.
        many: a list of tensors stands here.
        promoted: it takes part in the promotion of the call.
        scalar: a Python scalar may stand here.
        quantized: a quantised tensor stands here, as it is.
    """

    __slots__ = ("many", "name", "optional", "promoted", "quantized", "scalar")

    def __init__(self, text: str) -> None:
        self.optional = "?" in text
        self.many = "*" in text
        self.scalar = "~" in text
        self.promoted = self.scalar or "^" in text
        self.quantized = "!" in text
        self.name = text.rstrip("?*~^!")


class Attr:
    """One attribute of a signature; `kind` is `static`, `extent` or `scalar`."""

    __slots__ = ("kind", "name")

    def __init__(self, text: str) -> None:
        self.kind = {"#": "extent", "@": "scalar"}.get(text[-1], "static")
        self.name = text.rstrip("#@")


# Attributes that are flags wherever they occur; `dtype` is None or a DType.
FLAGS = (
    "accumulate", "causal", "ceil", "count_include_pad", "decoupled", "descending", "full", "gqa",
    "keep", "keepdim", "largest", "log_target", "match_rms", "maximize", "nesterov", "no_prox",
    "pivot", "return_counts", "return_inverse", "reverse", "right", "sorted", "training",
    "transpose", "unit", "upper",
)  # fmt: skip


# Attributes that are one number each, whole or not.
NUMBERS = ("correction", "divisor", "ignore_index", "ord")
_NO_NUMBER = (tuple, list, str, bool, DType)
# Scalars that may be None, which stands for a value that depends on the dtype.
OPENS = ("neginf", "posinf")


def _attributes_checked(
    op: str, first: int, attrs: tuple[Attr, ...], infer: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a rule that refuses flags that are no bools, dtypes that are none, odd numbers.

    Rules run once per key or after a failure, so a call that is remembered pays nothing.
    """
    known = [a for a in attrs if a.kind != "scalar"]
    places = [(first + i, a.name) for i, a in enumerate(known) if a.name in FLAGS]
    dtypes = [first + i for i, a in enumerate(known) if a.name == "dtype"]
    rest = [
        (first + i, a) for i, a in enumerate(known) if a.name not in FLAGS and a.name != "dtype"
    ]
    if not known:
        return infer

    @wraps(infer)
    def checked(*args: Any) -> Any:
        for place, name in places:
            if args[place].__class__ is not bool:
                raise DTypeError(op, f"{name} must be a bool", got=type(args[place]).__name__)
        for place in dtypes:
            if args[place] is not None and not isinstance(args[place], DType):
                given = args[place]
                raise DTypeError(
                    op, "dtype must be a dtype",
                    got=repr(given) if isinstance(given, (str, type)) else type(given).__name__,
                    remedy=dtype_remedy(given),
                )  # fmt: skip
        for place, attr in rest:
            value = args[place]
            if attr.name in NUMBERS and isinstance(value, _NO_NUMBER):
                raise DTypeError(op, f"{attr.name} must be a number", got=type(value).__name__)
            for part in value if value.__class__ in (tuple, list) else (value,):
                if part.__class__ is not int or not _LOW <= part <= _HIGH:
                    _check_part(op, attr, part)
        out = infer(*args)
        if out.__class__ is Spec and len(out.shape) > MAX_RANK:
            raise ShapeError(op, f"a tensor has at most {MAX_RANK} dims", got=len(out.shape))
        return out

    return checked


_LOW, _HIGH = -(2**63), 2**63 - 1
# As many as arrays of numpy have.
MAX_RANK = 64


def _check_part(op: str, attr: Attr, part: Any) -> None:
    """Check one value of an attribute that is neither flag nor dtype."""
    static = attr.kind == "static"
    if part is None and attr.name != "ord":
        return
    if static and isinstance(part, (bool, float, str, DType)):
        return
    if isinstance(part, (tuple, list)):
        for inner in part:
            _check_part(op, attr, inner)
        return
    # Arrays and tensors of one element offer `__index__` too, but they have a length.
    number = not isinstance(part, bool) and not hasattr(type(part), "__len__")
    if number and hasattr(type(part), "__index__"):
        if not _LOW <= part.__index__() <= _HIGH:
            raise ArgumentError(op, f"{attr.name} must fit 64 bits", got=part)
        return
    fractional = static or attr.name == "scales"
    if not (number and fractional and hasattr(type(part), "__float__")):
        words = "a number" if fractional else "an integer"
        got = repr(part) if isinstance(part, (bool, float, str)) else type(part).__name__
        raise DTypeError(op, f"{attr.name} must be {words}", got=got)


class Entry:
    """One operation of the catalogue.

    Attributes:
        name: its name; third parties write `package::name`.
        code: small int, valid in this process only; disk and wire use the name.
        inputs: tensor inputs.
        attrs: attributes, in the order static, extents, scalars.
        outputs: names of the outputs, or "list" when their number varies with the inputs.
        infer: shape and dtype rule: specs and attributes (no scalars) to a Spec or a tuple.
        klass: how it touches elements.
        accepts: dtypes of the promoted (or first) input: any, numeric, float, int, bits, bool.
        lift: integers and bools become the default float before the call.
        cost: "memory" or "compute" bound.
        autocast: what mixed precision does with it: `lower` and `f32` cast its inputs, `wide`
            leaves a first input of 16 bits as it is and sets the attribute `dtype` to float32.
        edges: edge semantics, from the closed list `EDGES`.
        differentiable: gradients flow.
        closed: its backward rule can be differentiated again.
        grade: core and optional primitives, or derived.
        decompose: for derived ones: `(ops, *inputs, *attrs)` written in other operations; given
            as a function, or as `module:function`, which is imported when first asked for.
        expr: for maps: the scalar expression, see `burn_ir.scalar`.
        doc: one line.
        since: first wire version that knows it.
    """

    __slots__ = (
        "_decompose", "accepts", "attrs", "autocast", "closed", "code", "cost", "differentiable",
        "doc", "edges", "expr", "grade", "infer", "inputs", "klass", "lift", "name", "outputs",
        "since",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        inputs: str,
        attrs: str,
        infer: Callable[..., Any],
        klass: Klass,
        doc: str,
        *,
        accepts: str = "any",
        lift: bool = False,
        outputs: str = "out",
        cost: Literal["memory", "compute"] = "memory",
        autocast: Autocast = "follow",
        edges: str = "",
        differentiable: bool = True,
        closed: bool = True,
        grade: Grade | None = None,
        decompose: Callable[..., Any] | str | None = None,
        expr: str | None = None,
        since: int = 1,
    ) -> None:
        self.name = name
        self.code = -1
        self.inputs = tuple(Input(t) for t in inputs.split())
        self.attrs = tuple(Attr(t) for t in attrs.split())
        self.infer = _attributes_checked(name, len(self.inputs), self.attrs, infer)
        self.klass: Klass = klass
        self.doc = doc
        self.accepts = accepts
        self.lift = lift
        self.outputs = tuple(outputs.split())
        self.cost = cost
        self.autocast: Autocast = autocast
        self.edges = tuple(edges.split())
        self.differentiable = differentiable
        self.closed = closed
        # What a third party adds no backend must have.
        primitive: Grade = "optional" if "::" in name else "core"
        self.grade: Grade = grade or (primitive if decompose is None else "derived")
        self._decompose = decompose
        self.expr = expr
        self.since = since
        order = [_ORDER[a.kind] for a in self.attrs]
        unknown = [e for e in self.edges if e not in EDGES]
        derived = self.grade == "derived"
        if order != sorted(order) or unknown or derived != (decompose is not None):
            raise GraphError(
                name,
                "entry: attributes go static, extents, scalars; edges come from EDGES; "
                "derived has a decomposition and nothing else has",
                got=(attrs, edges, self.grade),
            )
        names = [i.name for i in self.inputs] + [a.name for a in self.attrs]
        if len(set(names)) != len(names):
            raise GraphError(name, "entry: every input and attribute has its own name", got=names)

    @property
    def decompose(self) -> Callable[..., Any] | None:
        """The decomposition, imported on first use; None for primitives."""
        given = self._decompose
        if not isinstance(given, str):
            return given
        found: Callable[..., Any] = load_object(given)
        self._decompose = found
        return found

    @property
    def multi(self) -> bool:
        """True when the call returns several tensors."""
        return len(self.outputs) > 1 or self.outputs == ("list",)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


_ORDER = {"static": 0, "extent": 1, "scalar": 2}

# The closed list of edge semantics; each name is a line of the numerics contract from which
# burn_testing makes samples.
EDGES = (
    "nan_propagates", "nan_first_wins", "nan_false", "ties_lowest", "ties_last", "ties_share",
    "empty_zero", "empty_one", "empty_false", "empty_true", "empty_nan", "empty_raises",
    "int_wraps", "zero_division_is_zero", "shift_range", "saturating_cast", "masked_row_zero",
    "index_checked", "duplicates_count", "last_wins", "stable", "ignored_nan",
)  # fmt: skip


class Catalog:
    """All operations by name; codes are dense ints in order of registration."""

    def __init__(self) -> None:
        self._by_name: dict[str, Entry] = {}
        self.by_code: list[Entry] = []
        self._followers: list[Callable[[Entry], object]] = []

    def follow(self, told: Callable[[Entry], object]) -> None:
        """Tell a function of every entry, and of those that come later.

        Args:
            told: takes an entry.
        """
        self._followers.append(told)
        for entry in self.by_code:
            told(entry)

    def add(self, entry: Entry) -> Entry:
        """Register an entry; works at any time, live backends pick it up on first use.

        Raises:
            GraphError: the name is taken.
        """
        if entry.name in self._by_name:
            raise GraphError(entry.name, "the name of an operation is unique", got="a second entry")
        entry.code = len(self.by_code)
        self.by_code.append(entry)
        self._by_name[entry.name] = entry
        for told in self._followers:
            told(entry)
        return entry

    def get(self, name: str) -> Entry | None:
        """Return the entry of that name, or None."""
        return self._by_name.get(name)

    def __getitem__(self, name: str) -> Entry:
        entry = self._by_name.get(name)
        if entry is None:
            raise GraphError(
                name, "no such operation in the catalogue", remedy=nearest(name, self._by_name)
            )
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.by_code)

    def __len__(self) -> int:
        return len(self.by_code)


CATALOG = Catalog()


def register(entry: Entry) -> Entry:
    """Add a third party's operation to the catalogue, at any time.

    Live backends make its functions on first use; it records, fuses around, differentiates,
    captures and travels like one of this project.

    Args:
        entry: the operation, named `package::name`; without a decomposition a backend needs a
            kernel of its own.

    Returns:
        The entry, with its code.

    Raises:
        GraphError: the name has no package part, or is taken.

    Example:
        >>> from burn_ir.rules.basic import broadcast
        >>> twice = Entry("docs::twice", "x~", "", broadcast("docs::twice", "any"), "map",
        ...               "x + x", expr="x + x", decompose=lambda ops, x: ops.add(x, x))
        >>> register(twice)
        <op docs::twice>
        >>> CATALOG["docs::twice"].grade
        'derived'
    """
    package, mark, name = entry.name.partition("::")
    if not (mark and package.isidentifier() and name.isidentifier()):
        raise GraphError(
            entry.name,
            "a registered operation is named `package::name`, both being identifiers",
            got=repr(entry.name),
        )
    return CATALOG.add(entry)


def op(
    name: str,
    inputs: str,
    attrs: str,
    infer: Callable[..., Any],
    klass: Klass,
    doc: str,
    *,
    derived: str | None = None,
    **more: Any,
) -> Entry:
    """Declare an operation of this project.

    `derived` names the module of its decomposition, `burn_ir.catalog.decompose_<derived>`, where
    a function of the operation's name stands (with an underscore after a builtin's name).
    """
    if derived:
        function = name + "_" if name in ("any", "all") else name
        more["decompose"] = f"burn_ir.catalog.decompose_{derived}:{function}"
    return CATALOG.add(Entry(name, inputs, attrs, infer, klass, doc, **more))
