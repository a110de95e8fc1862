"""Einstein summation, lowered to diagonals, sums, permutations and batched matrix products.

Operands are reduced to the labels still needed, then contracted in pairs, the pair whose result is
smallest for what it removes first. A pair becomes one matmul: labels in both and in the result are
its batch, labels in both only its inner dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from burn_backend import Memo, TensorBase
from burn_std import ArgumentError, ShapeError
from burn_tensor.functional.values import meeting
from burn_tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn_tensor.methods import Operations

Labels = tuple[int, ...]
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
    ranks = tuple([len(x.shape) for x in operands])
    inputs, output = _PARSED[equation, ranks]
    b = meeting("einsum", *operands)
    sizes = _sizes(inputs, operands)
    terms = [
        _term(b, x, labels, [n for j, other in enumerate(inputs) if j != i for n in other], output)
        for i, (x, labels) in enumerate(zip(operands, inputs, strict=True))
    ]
    while len(terms) > 1:
        i, j = _cheapest([labels for _, labels in terms], output, sizes)
        right, left = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(labels for _, labels in terms))
        terms.append(_contract(b, left, right, needed))
    return _finish(b, *terms[0], output, sizes)


# ---- reading ------------------------------------------------------------------------------------


def _from_sublists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and operands of the form `einsum(x, [0, 1], y, [1, 2], [0, 2])`."""
    pairs, rest = len(arguments) // 2, arguments[len(arguments) // 2 * 2 :]
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


def _parse(key: tuple[str, Labels]) -> tuple[tuple[Labels, ...], Labels]:
    """Return the labels of every operand and of the output, ellipses resolved to labels."""
    equation, ranks = key
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


_PARSED = Memo(_parse)


def _sizes(inputs: tuple[Labels, ...], operands: Sequence[Any]) -> dict[int, int]:
    """Return the extent of every label; 1 broadcasts between operands, not inside one."""
    sizes: dict[int, int] = {}
    for x, labels in zip(operands, inputs, strict=True):
        own: dict[int, int] = {}
        for n, extent in zip(labels, x.shape, strict=True):
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


# ---- computing ----------------------------------------------------------------------------------


def _term(
    b: Operations, x: Tensor, labels: Labels, elsewhere: Sequence[int], output: Labels
) -> tuple[Tensor, Labels]:
    """Return an operand with repeated labels on their diagonal and lonely labels summed over."""
    names = list(labels)
    for n in sorted(set(names)):
        while names.count(n) > 1:
            i = names.index(n)
            j = names.index(n, i + 1)
            x = b.diagonal(x, i, j, 0)
            names = [m for k, m in enumerate(names) if k not in (i, j)] + [n]
    return _summed(b, x, tuple(names), set(elsewhere) | set(output))


def _summed(b: Operations, x: Tensor, labels: Labels, needed: set[int]) -> tuple[Tensor, Labels]:
    gone = tuple([i for i, n in enumerate(labels) if n not in needed])
    if not gone:
        return x, labels
    return b.sum(x, gone, False, None), tuple([n for n in labels if n in needed])


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


def _contract(
    b: Operations, left: tuple[Tensor, Labels], right: tuple[Tensor, Labels], needed: set[int]
) -> tuple[Tensor, Labels]:
    """Return the product of two terms, summed over labels that nothing else needs."""
    x, own = _squeezed(b, *left, right[1], right[0])
    y, other = _squeezed(b, *right, left[1], left[0])
    # A label summed over here that only one side still has is summed before the product.
    x, own = _summed(b, x, own, needed | set(other))
    y, other = _summed(b, y, other, needed | set(own))
    batch = [n for n in own if n in other and n in needed]
    inner = [n for n in own if n in other and n not in needed]
    rows = [n for n in own if n not in other]
    columns = [n for n in other if n not in own]
    out_labels = (*batch, *rows, *columns)
    if not inner:
        # Nothing is summed: an elementwise product of aligned views.
        x = _aligned(b, x, own, out_labels)
        return b.mul(x, _aligned(b, y, other, out_labels)), out_labels
    extent = {
        n: e for labels, t in ((own, x), (other, y)) for n, e in zip(labels, t.shape, strict=True)
    }

    def flat(t: Tensor, labels: Labels, groups: tuple[list[int], ...]) -> Tensor:
        order = [n for g in groups for n in g]
        t = b.permute(t, tuple([labels.index(n) for n in order]))
        return b.reshape(t, tuple([prod([extent[n] for n in g]) for g in groups]))

    if batch:
        out = b.matmul(flat(x, own, (batch, rows, inner)), flat(y, other, (batch, inner, columns)))
    else:
        out = b.matmul(flat(x, own, (rows, inner)), flat(y, other, (inner, columns)))
    return b.reshape(out, tuple([extent[n] for n in out_labels])), out_labels


def _squeezed(
    b: Operations, x: Tensor, labels: Labels, others: Labels, other: Tensor
) -> tuple[Tensor, Labels]:
    """Return x without the dims of extent 1 that broadcast against a longer one of the other."""
    wide = dict(zip(others, other.shape, strict=True))
    gone = tuple([
        i for i, n in enumerate(labels) if x.shape[i] == 1 and wide.get(n, 1) != 1
    ])  # fmt: skip
    if not gone:
        return x, labels
    return b.squeeze(x, gone), tuple([n for i, n in enumerate(labels) if i not in gone])


def _aligned(b: Operations, x: Tensor, labels: Labels, wanted: Labels) -> Tensor:
    """Return x permuted to the order of `wanted`, with dims of extent 1 for missing labels."""
    order = [n for n in wanted if n in labels]
    x = b.permute(x, tuple([labels.index(n) for n in order]))
    at = tuple([i for i, n in enumerate(wanted) if n not in labels])
    return b.unsqueeze(x, at) if at else x


def _finish(
    b: Operations, x: Tensor, labels: Labels, output: Labels, sizes: dict[int, int]
) -> Tensor:
    x = _aligned(b, x, labels, output)
    shape = tuple([sizes[n] for n in output])
    return b.expand(x, shape) if x.shape != shape else x
