"""Einstein summation, lowered to diagonals, sums, permutations and batched matrix products.

Operands are reduced to the labels still needed, then contracted in pairs, the pair whose result is
smallest for what it removes first. A pair becomes one matmul: labels in both and in the result are
its batch, labels in both only its inner dim. The plan of an equation is made once per shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from burn_backend import Memo, TensorBase
from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import need_tensor
from burn_tensor.functional.values import meeting
from burn_tensor.tensor import Tensor

Labels = tuple[int, ...]
# An operation of the catalogue, where its inputs stand, and its attributes.
Step = tuple[str, Labels, Any]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Labels of the dims that an ellipsis stands for lie above the letters; -1 is the last of them.
_ELLIPSIS = 1000


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Return the sum of products of the operands that the equation names.

    Each letter names a dim; a letter in several places means equal positions; letters missing in
    the output are summed over. Without `->` the output has the letters that occur once, in
    alphabetical order, after the dims of an ellipsis. An operand's dim of extent 1 broadcasts.

    Args:
        equation: such as `bij,bjk->bik` or `...ii->...`; or the first operand, each followed by a
            list of its labels (ints in [0, 52) or `...`), and last the labels of the output.
        operands: the tensors, or one list of them.

    Shapes:
        operands: as the equation says
        returns: as the equation says

    DTypes: any; the operands promote. 16-bit floats accumulate in float32.

    Raises:
        ArgumentError: the equation is malformed or its labels do not fit the operands.
        ShapeError: one label names different extents.

    Gradient: defined for every operand.

    Example:
        >>> x = burn.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> burn.einsum("ii->", x).item(), burn.einsum("ij->ji", x).tolist()
        (5.0, [[1.0, 3.0], [2.0, 4.0]])
        >>> burn.einsum(x, [0, 1], x, [1, 2], [0, 2]).tolist()
        [[7.0, 10.0], [15.0, 22.0]]
    """
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
    else:
        equation, operands = _from_sublists((equation, *operands))
    if not operands:
        raise ArgumentError("einsum", "needs at least one operand", got=repr(equation))
    for operand in operands:
        need_tensor("einsum", "an operand", operand)
    b = meeting("einsum", *operands)
    values = list(operands)
    for name, slots, attributes in _PLANS[equation, tuple([x.shape for x in operands])]:
        values.append(getattr(b, name)(*[values[i] for i in slots], *attributes))
    out: Tensor = values[-1]
    return out


# ---- reading ------------------------------------------------------------------------------------


def _from_sublists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and operands of the form `einsum(x, [0, 1], y, [1, 2], [0, 2])`."""
    pairs, rest = len(arguments) // 2, arguments[len(arguments) // 2 * 2 :]
    if not pairs or (rest and not isinstance(rest[0], (list, tuple))):
        raise ArgumentError(
            "einsum", "needs an equation, or tensors each followed by a list of labels",
            got=", ".join([type(a).__name__ for a in arguments]),
        )  # fmt: skip
    texts, operands = [], []
    for k in range(pairs):
        x, labels = arguments[2 * k], arguments[2 * k + 1]
        if not isinstance(x, TensorBase) or not isinstance(labels, (list, tuple)):
            raise ArgumentError(
                "einsum", "needs an equation, or tensors each followed by a list of labels",
                got=f"{type(x).__name__}, {type(labels).__name__}",
            )  # fmt: skip
        operands.append(x)
        texts.append(_text(labels))
    equation = ",".join(texts)
    return (f"{equation}->{_text(rest[0])}" if rest else equation), tuple(operands)


def _text(labels: Any) -> str:
    out = []
    for n in labels:
        if n is Ellipsis:
            out.append("...")
        elif isinstance(n, int) and 0 <= n < 52:
            out.append(_LETTERS[n])
        else:
            raise ArgumentError("einsum", "labels are ints in [0, 52) or ...", got=repr(n))
    return "".join(out)


def _refuse(rule: str, equation: str) -> ArgumentError:
    return ArgumentError("einsum", rule, got=repr(equation))


def _parse(equation: str, ranks: Labels) -> tuple[tuple[Labels, ...], Labels]:
    """Return the labels of every operand and of the output, ellipses resolved to labels."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ArgumentError(
            "einsum", "the equation must name every operand",
            got=f"{equation!r} and {len(ranks)} operands",
        )  # fmt: skip
    split = [_split(part, equation) for part in parts]
    hidden = 0
    for (before, after), rank in zip(split, ranks, strict=True):
        count = len(before) + len(after or "")
        if rank < count or (after is None and rank != count):
            raise ArgumentError(
                "einsum", "the labels of an operand must be as many as its dims",
                got=f"{equation!r} for ranks {ranks}",
            )  # fmt: skip
        if after is not None:
            hidden = max(hidden, rank - count)
    inputs = tuple(
        _labels(before, after, rank) for (before, after), rank in zip(split, ranks, strict=True)
    )
    dots = tuple(range(_ELLIPSIS - hidden, _ELLIPSIS))
    letters = [n for labels in inputs for n in labels if n < _ELLIPSIS - hidden]
    if not arrow:
        once = sorted({n for n in letters if letters.count(n) == 1})
        return inputs, (*dots, *once)
    before, after = _split(right, equation)
    output = tuple([_LETTERS.index(c) for c in before])
    if after is not None:
        output = (*output, *dots, *[_LETTERS.index(c) for c in after])
    if len(set(output)) != len(output):
        raise _refuse("a label occurs once in the output", equation)
    known = set(letters).union(dots)
    if not set(output) <= known:
        raise _refuse("every label of the output occurs in an operand", equation)
    return inputs, output


def _split(part: str, equation: str) -> tuple[str, str | None]:
    """Return the letters before and after an ellipsis; None where there is none."""
    before, dots, after = part.partition("...")
    if any(c not in _LETTERS for c in before + after):
        raise _refuse("labels are letters, with at most one ... each", equation)
    return before, after if dots else None


def _labels(before: str, after: str | None, rank: int) -> Labels:
    out = [_LETTERS.index(c) for c in before]
    if after is None:
        return tuple(out)
    hidden = rank - len(before) - len(after)
    return (*out, *range(_ELLIPSIS - hidden, _ELLIPSIS), *[_LETTERS.index(c) for c in after])


def _sizes(inputs: tuple[Labels, ...], shapes: Sequence[Labels]) -> dict[int, int]:
    """Return the extent of every label; 1 broadcasts between operands, not inside one."""
    sizes: dict[int, int] = {}
    for shape, labels in zip(shapes, inputs, strict=True):
        own: dict[int, int] = {}
        for n, extent in zip(labels, shape, strict=True):
            if own.setdefault(n, extent) != extent:
                raise _extents(n, own[n], extent)
        for n, extent in own.items():
            known = sizes.setdefault(n, extent)
            if known == 1:
                sizes[n] = extent
            elif extent not in (1, known):
                raise _extents(n, known, extent)
    return sizes


def _extents(label: int, one: int, other: int) -> ShapeError:
    name = _LETTERS[label] if label < len(_LETTERS) else "..."
    return ShapeError("einsum", "a label names one extent, or 1", got=f"{name}: {one} and {other}")


# ---- planning -----------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A value of the plan: where it will stand, and its shape."""

    slot: int
    shape: Labels


class _Plan:
    """Records operations in the order in which they will run, leaving out those without effect."""

    def __init__(self, shapes: Sequence[Labels]) -> None:
        self.steps: list[Step] = []
        self.parts = [_Part(i, s) for i, s in enumerate(shapes)]

    def note(self, shape: Labels, name: str, *parts: _Part, attributes: Any = ()) -> _Part:
        """Add an operation whose result has this shape."""
        self.steps.append((name, tuple([p.slot for p in parts]), attributes))
        self.parts.append(_Part(len(self.parts), shape))
        return self.parts[-1]

    def permute(self, x: _Part, dims: Labels) -> _Part:
        """Add a permutation, unless it keeps the order."""
        if dims == tuple(range(len(dims))):
            return x
        return self.note(tuple([x.shape[d] for d in dims]), "permute", x, attributes=(dims,))

    def reshape(self, x: _Part, shape: Labels) -> _Part:
        """Add a reshape, unless it keeps the shape."""
        return x if shape == x.shape else self.note(shape, "reshape", x, attributes=(shape,))

    def diagonal(self, x: _Part, i: int, j: int) -> _Part:
        """Add a diagonal of dims i and j, which becomes the last dim."""
        rest = tuple([n for d, n in enumerate(x.shape) if d not in (i, j)])
        return self.note((*rest, x.shape[i]), "diagonal", x, attributes=(i, j, 0))

    def without(self, x: _Part, dims: Labels, name: str, *more: Any) -> _Part:
        """Add a sum or a squeeze over dims, which go."""
        rest = tuple([n for d, n in enumerate(x.shape) if d not in dims])
        return self.note(rest, name, x, attributes=(dims, *more))


def _make(key: tuple[str, tuple[Labels, ...]]) -> list[Step]:
    """Return the steps of an equation for operands of these shapes."""
    equation, shapes = key
    inputs, output = _parse(equation, tuple([len(s) for s in shapes]))
    sizes = _sizes(inputs, shapes)
    plan = _Plan(shapes)
    terms = []
    for i, (x, labels) in enumerate(zip(list(plan.parts), inputs, strict=True)):
        others = {n for j, other in enumerate(inputs) if j != i for n in other}
        terms.append(_term(plan, x, labels, others | set(output)))
    while len(terms) > 1:
        i, j = _cheapest([labels for _, labels in terms], output, sizes)
        right, left = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(labels for _, labels in terms))
        terms.append(_contract(plan, left, right, needed))
    x = _aligned(plan, *terms[0], output)
    shape = tuple([sizes[n] for n in output])
    if x.shape != shape:
        plan.note(shape, "expand", x, attributes=(shape,))
    elif not plan.steps or x.slot != len(plan.parts) - 1:
        plan.note(shape, "reshape", x, attributes=(shape,))  # the last value is the result
    return plan.steps


_PLANS = Memo(_make)
Term = tuple[_Part, Labels]


def _term(plan: _Plan, x: _Part, labels: Labels, needed: set[int]) -> Term:
    """Return an operand with repeated labels on their diagonal and lonely labels summed over."""
    names = list(labels)
    for n in sorted(set(names)):
        while names.count(n) > 1:
            i = names.index(n)
            j = names.index(n, i + 1)
            x = plan.diagonal(x, i, j)
            names = [m for k, m in enumerate(names) if k not in (i, j)] + [n]
    return _summed(plan, x, tuple(names), needed)


def _summed(plan: _Plan, x: _Part, labels: Labels, needed: set[int]) -> Term:
    gone = tuple([i for i, n in enumerate(labels) if n not in needed])
    if not gone:
        return x, labels
    return plan.without(x, gone, "sum", False, None), tuple([n for n in labels if n in needed])


def _cheapest(terms: list[Labels], output: Labels, sizes: dict[int, int]) -> tuple[int, int]:
    """Return the pair whose contraction leaves the least more than it takes away."""
    best, found = None, (0, 1)
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            needed = set(output).union(*(t for k, t in enumerate(terms) if k not in (i, j)))
            union = set(terms[i]) | set(terms[j])
            result = prod([sizes[n] for n in union & needed])
            taken = prod([sizes[n] for n in terms[i]]) + prod([sizes[n] for n in terms[j]])
            cost = (result - taken, prod([sizes[n] for n in union]))
            if best is None or cost < best:
                best, found = cost, (i, j)
    return found


def _contract(plan: _Plan, left: Term, right: Term, needed: set[int]) -> Term:
    """Return the product of two terms, summed over labels that nothing else needs."""
    x, own = _squeezed(plan, *left, right[1], right[0])
    y, other = _squeezed(plan, *right, left[1], left[0])
    # A label summed over here that only one side still has is summed before the product.
    x, own = _summed(plan, x, own, needed | set(other))
    y, other = _summed(plan, y, other, needed | set(own))
    batch = [n for n in own if n in other and n in needed]
    inner = [n for n in own if n in other and n not in needed]
    rows = [n for n in own if n not in other]
    columns = [n for n in other if n not in own]
    out_labels = (*batch, *rows, *columns)
    if not inner:
        # Nothing is summed: an elementwise product of aligned views.
        x = _aligned(plan, x, own, out_labels)
        y = _aligned(plan, y, other, out_labels)
        shape = tuple([max(n, m) if n and m else 0 for n, m in zip(x.shape, y.shape, strict=True)])
        return plan.note(shape, "mul", x, y), out_labels
    extent = {
        n: e for labels, t in ((own, x), (other, y)) for n, e in zip(labels, t.shape, strict=True)
    }

    def flat(t: _Part, labels: Labels, groups: tuple[list[int], ...]) -> _Part:
        order = [n for g in groups for n in g]
        t = plan.permute(t, tuple([labels.index(n) for n in order]))
        return plan.reshape(t, tuple([prod([extent[n] for n in g]) for g in groups]))

    many = (batch,) if batch else ()
    x = flat(x, own, (*many, rows, inner))
    y = flat(y, other, (*many, inner, columns))
    out = plan.note((*x.shape[:-1], y.shape[-1]), "matmul", x, y)
    return plan.reshape(out, tuple([extent[n] for n in out_labels])), out_labels


def _squeezed(plan: _Plan, x: _Part, labels: Labels, others: Labels, other: _Part) -> Term:
    """Return x without the dims of extent 1 that broadcast against a longer one of the other."""
    wide = dict(zip(others, other.shape, strict=True))
    gone = tuple([
        i for i, n in enumerate(labels) if x.shape[i] == 1 and wide.get(n, 1) != 1
    ])  # fmt: skip
    if not gone:
        return x, labels
    return plan.without(x, gone, "squeeze"), tuple(
        [n for i, n in enumerate(labels) if i not in gone]
    )


def _aligned(plan: _Plan, x: _Part, labels: Labels, wanted: Labels) -> _Part:
    """Return x permuted to the order of `wanted`, with dims of extent 1 for missing labels."""
    x = plan.permute(x, tuple([labels.index(n) for n in wanted if n in labels]))
    extents = iter(x.shape)
    return plan.reshape(x, tuple([next(extents) if n in labels else 1 for n in wanted]))
