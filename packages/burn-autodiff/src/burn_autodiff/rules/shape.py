"""Rules of views, joins and padding: each operation and its adjoint, both ways."""

from __future__ import annotations

from burn_autodiff.rules.pieces import at, sum_to, total, zeros
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_backend import Memo


@rule("reshape")
def reshape(c: Call, g: Tensor) -> Grads:
    """Reshape g back."""
    return c.ops.reshape(g, c.shapes[0])


# Permutations that undo others, remembered: there are few, and the rule is called often.
_INVERSE = Memo(lambda dims: tuple(sorted(range(len(dims)), key=dims.__getitem__)))


@rule("permute")
def permute(c: Call, g: Tensor) -> Grads:
    """Permute g by the inverse permutation."""
    return c.ops.permute(g, _INVERSE[c.attrs[0]])


@rule("expand")
def expand(c: Call, g: Tensor) -> Grads:
    """Sum g over the dims that were repeated."""
    return sum_to(c, g, c.shapes[0])


@rule("squeeze")
def squeeze(c: Call, g: Tensor) -> Grads:
    """Insert the dims into g again."""
    return c.ops.reshape(g, c.shapes[0])


@rule("unsqueeze")
def unsqueeze(c: Call, g: Tensor) -> Grads:
    """Remove the dims from g again."""
    return c.ops.reshape(g, c.shapes[0])


@rule("select")
def select(c: Call, g: Tensor) -> Grads:
    """Zeros with g in the slice."""
    dim, index = c.attrs
    shape = c.shapes[0]
    rank = len(shape)
    return c.ops.slice_backward(
        c.ops.unsqueeze(g, (dim,)),
        (1,) * rank,
        tuple(index if i == dim else 0 for i in range(rank)),
        tuple(index + 1 if i == dim else n for i, n in enumerate(shape)),
        shape,
    )


@rule("slice")
def slice_(c: Call, g: Tensor) -> Grads:
    """Zeros with g in the window."""
    return c.ops.slice_backward(g, *c.attrs, c.shapes[0])


@rule("slice_backward")
def slice_backward(c: Call, g: Tensor) -> Grads:
    """Read the window of g."""
    return c.ops.slice(g, *c.attrs[:3])


@rule("slice_assign")
def slice_assign(c: Call, g: Tensor) -> Grads:
    """dx 0 where written, else 1; dvalue the window of g."""
    gx = gv = None
    if c.need[0]:
        gx = c.ops.slice_assign(g, zeros(c, (), g), *c.attrs)
    if c.need[1]:
        gv = sum_to(c, c.ops.slice(g, *c.attrs), c.shapes[1])
    return gx, gv


@rule("flip")
def flip(c: Call, g: Tensor) -> Grads:
    """Flip g back."""
    return c.ops.flip(g, c.attrs[0])


@rule("diagonal")
def diagonal(c: Call, g: Tensor) -> Grads:
    """Zeros with g on the diagonal."""
    dim1, dim2, offset = c.attrs
    return c.ops.diagonal_backward(g, dim1, dim2, c.shapes[0], offset)


@rule("diagonal_backward")
def diagonal_backward(c: Call, g: Tensor) -> Grads:
    """Read the diagonal of g."""
    dim1, dim2, _, offset = c.attrs
    return c.ops.diagonal(g, dim1, dim2, offset)


@rule("unfold_dim")
def unfold_dim(c: Call, g: Tensor) -> Grads:
    """Add the windows of g up."""
    return c.ops.unfold_dim_backward(g, *c.attrs, c.shapes[0])


@rule("unfold_dim_backward")
def unfold_dim_backward(c: Call, g: Tensor) -> Grads:
    """Read the windows of g."""
    return c.ops.unfold_dim(g, *c.attrs[:3])


@rule("cat")
def cat(c: Call, g: Tensor) -> Grads:
    """Each tensor's part of g."""
    dim, start, grads = c.attrs[0], 0, []
    for shape, needed in zip(c.shapes[0], c.need[0], strict=True):
        stop = start + shape[dim]
        grads.append(at(c, g, dim, start, stop) if needed else None)
        start = stop
    return (grads,)


@rule("pad")
def pad(c: Call, g: Tensor) -> Grads:
    """Add the padded elements of g onto what they repeat."""
    return c.ops.pad_backward(g, c.attrs[0], c.attrs[1])


@rule("pad_backward")
def pad_backward(c: Call, g: Tensor) -> Grads:
    """Pad g; constant padding with 0."""
    return c.ops.pad(g, c.attrs[0], c.attrs[1], 0.0)


@rule("roll")
def roll(c: Call, g: Tensor) -> Grads:
    """Roll g back."""
    dims, shifts = c.attrs
    return c.ops.roll(g, dims, tuple(-s for s in shifts))


@rule("repeat")
def repeat(c: Call, g: Tensor) -> Grads:
    """Sum g over the copies."""
    repeats = c.attrs[0]
    lead = len(repeats) - len(c.shapes[0])
    tiles: list[int] = []
    for r, n in zip(repeats, (1,) * lead + c.shapes[0], strict=True):
        tiles += (r, n)
    copies = c.ops.reshape(g, tuple(tiles))
    dims = tuple(2 * i for i, r in enumerate(repeats) if r != 1)
    return c.ops.reshape(total(c, copies, dims), c.shapes[0])


@rule("tril")
def tril(c: Call, g: Tensor) -> Grads:
    """The lower triangle of g."""
    return c.ops.tril(g, c.attrs[0])


@rule("triu")
def triu(c: Call, g: Tensor) -> Grads:
    """The upper triangle of g."""
    return c.ops.triu(g, c.attrs[0])


@rule("contiguous")
def contiguous(c: Call, g: Tensor) -> Grads:
    """The identity."""
    return g
