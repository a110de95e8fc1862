"""Rules of random operations: the mask is recomputed from the key, so nothing is saved."""

from __future__ import annotations

from burn_autodiff.rules.table import Call, Grads, Tensor, rule


@rule("dropout")
def dropout(c: Call, g: Tensor) -> Grads:
    """The same mask and scale on g."""
    return c.ops.dropout(g, *c.attrs)
