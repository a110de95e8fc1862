"""Rules of gathering, scattering and integer-array indexing."""

from __future__ import annotations

from burn_autodiff.rules.pieces import drop_where, fit, keep_where, sum_to, zeros, zeros_like
from burn_autodiff.rules.table import Call, Grads, Tensor, rule


@rule("gather", saves="index")
def gather(c: Call, g: Tensor, index: Tensor) -> Grads:
    """G added at the indices, onto zeros."""
    return c.ops.scatter(zeros(c, c.shapes[0], g), index, g, c.attrs[0], "add"), None


@rule("scatter", saves="x index src")
def scatter(c: Call, g: Tensor, x: Tensor, index: Tensor, src: Tensor) -> Grads:
    """dsrc g at the indices; dx g, and 0 where an assignment wrote.

    Which of several sources won an assignment is not tracked: each of them gets g.
    """
    ops = c.ops
    dim, mode = c.attrs
    src = fit(c, src, index.shape)
    gx = gs = None
    if mode == "multiply":
        gx, gs = _scattered_product(c, g, x, index, src)
    elif mode in ("amin", "amax"):
        gx, gs = _scattered_extreme(c, g, x, index, src)
    else:
        if c.need[0]:
            none = zeros(c, index.shape, g)
            gx = g if mode == "add" else ops.scatter(g, index, none, dim, mode)
        if c.need[2]:
            gs = ops.gather(g, index, dim)
    return gx, None, None if gs is None else fit(c, gs, c.shapes[2])


def _scattered_product(
    c: Call, g: Tensor, x: Tensor, index: Tensor, src: Tensor
) -> tuple[Tensor, Tensor]:
    """Return g times the product of all the others at the same place.

    Without dividing by zeros: a product of the elements that are not 0, and a count of those that
    are. The zeros are constants of this gradient, so second order leaves them out.
    """
    ops, dim, gx, gs = c.ops, c.attrs[0], None, None
    if c.need[0]:
        ones = ops.full(g.dtype, x.shape, 1)
        gx = ops.mul(g, ops.scatter(ones, index, src, dim, "multiply"))
    if c.need[2]:
        zero_x, zero_src = ops.eq(x, 0.0), ops.eq(src, 0.0)
        safe_x, safe_src = ops.where(zero_x, 1.0, x), ops.where(zero_src, 1.0, src)
        rest = ops.scatter(safe_x, index, safe_src, dim, "multiply")
        mine = ops.cast(zero_src, g.dtype)
        count = ops.scatter(ops.cast(zero_x, g.dtype), index, mine, dim, "add")
        others = ops.sub(ops.gather(count, index, dim), mine)
        share = ops.div(ops.gather(ops.mul(g, rest), index, dim), safe_src)
        gs = keep_where(c, ops.eq(others, 0.0), share)
    return gx, gs


def _scattered_extreme(
    c: Call, g: Tensor, x: Tensor, index: Tensor, src: Tensor
) -> tuple[Tensor, Tensor]:
    """Return g shared evenly by all that equal the extreme."""
    ops, (dim, mode) = c.ops, c.attrs
    out = ops.scatter(x, index, src, dim, mode)
    hit_x = ops.eq(x, out)
    hit_src = ops.eq(src, ops.gather(out, index, dim))
    count = ops.scatter(ops.cast(hit_x, g.dtype), index, ops.cast(hit_src, g.dtype), dim, "add")
    share = ops.div(g, ops.maximum(count, 1.0))
    return (
        keep_where(c, hit_x, share) if c.need[0] else None,
        keep_where(c, hit_src, ops.gather(share, index, dim)) if c.need[2] else None,
    )


@rule("index_select", saves="index")
def index_select(c: Call, g: Tensor, index: Tensor) -> Grads:
    """Slices of g added at the indices, onto zeros."""
    if not c.shapes[0]:
        return g, None
    return c.ops.index_add(zeros(c, c.shapes[0], g), index, g, c.attrs[0], 1), None


@rule("index_add", saves="index")
def index_add(c: Call, g: Tensor, index: Tensor) -> Grads:
    """dx 1; dsrc alpha g at the indices."""
    dim, alpha = c.attrs
    gs = None
    if c.need[2]:
        gs = c.ops.reshape(c.ops.index_select(g, index, dim), c.shapes[2])
        gs = gs if alpha == 1 else c.ops.mul(gs, alpha)
    return g if c.need[0] else None, None, gs


@rule("index", saves="indices")
def index_(c: Call, g: Tensor, indices: Tensor) -> Grads:
    """G added at the indices, onto zeros."""
    base = zeros(c, c.shapes[0], g)
    return c.ops.index_put(base, g, list(indices), c.attrs[0], True), None


@rule("index_put", saves="indices")
def index_put(c: Call, g: Tensor, indices: Tensor) -> Grads:
    """dx 1, and 0 where an assignment wrote; dvalue g at the indices."""
    dims, accumulate = c.attrs
    gx = gv = None
    if c.need[0]:
        none = zeros(c, (), g)
        gx = g if accumulate else c.ops.index_put(g, none, list(indices), dims, False)
    if c.need[1]:
        gv = sum_to(c, c.ops.index(g, list(indices), dims), c.shapes[1])
    return gx, gv, None


@rule("embedding", saves="index")
def embedding(c: Call, g: Tensor, index: Tensor) -> Grads:
    """Rows of g added at the indices; the padding row gets none."""
    return c.ops.embedding_backward(g, index, c.attrs[0], c.shapes[0][0]), None


@rule("embedding_backward", saves="index")
def embedding_backward(c: Call, g: Tensor, index: Tensor) -> Grads:
    """Rows of g at the indices; 0 for the padding index."""
    padding = c.attrs[0]
    rows = c.ops.embedding(g, index, padding)
    if padding is None:
        return rows, None
    skipped = c.ops.unsqueeze(c.ops.eq(index, padding), (len(index.shape),))
    return drop_where(c, skipped, rows), None


@rule("masked_select", saves="mask")
def masked_select(c: Call, g: Tensor, mask: Tensor) -> Grads:
    """The elements of g put where mask, in row-major order; 0 elsewhere.

    Every place reads g at the number of true elements before it, the false ones a zero behind g.
    """
    ops, n = c.ops, g.shape[0]
    if n == 0:
        return zeros_like(c, 0), None
    size = 1
    for extent in mask.shape:
        size *= extent
    flat = ops.reshape(mask, (size,))
    place = ops.where(flat, ops.sub(ops.cumsum(flat, 0, None), 1), n)
    padded = ops.pad(g, "constant", ((0, 1),), 0.0)
    return ops.reshape(ops.index_select(padded, place, 0), c.shapes[0]), None
