"""Lowering: what a target lacks is written with what every target has, once for all of them."""

from __future__ import annotations

from burn_cube.ir import Kernel
from burn_cube.lowering.copies import copies_at_once
from burn_cube.lowering.halves import widen_halves
from burn_cube.lowering.integers import legalize
from burn_cube.lowering.planes import planes_in_memory
from burn_cube.lowering.rewrite import clone
from burn_cube.lowering.tiles import tiles_in_memory
from burn_cube.lowering.transcendental import expand_math
from burn_cube.passes import simplify


def lower(
    kernel: Kernel, *, planes: bool, math: bool, wide: bool = True, tiles: bool = True
) -> Kernel:
    """Return a copy that holds only what every emitter knows.

    Args:
        kernel: the kernel as the front end or a builder made it; it stays as it is.
        planes: write plane operations with shared memory and barriers.
        math: write transcendental functions as polynomials.
        wide: the target has float64, in which most functions of float32 are computed; without
            it only those with a float32 polynomial are written out.
        tiles: write matrix tiles with shared memory and loops.
    """
    made = copies_at_once(clone(kernel))
    if tiles:
        made = tiles_in_memory(made)
    made = widen_halves(made)
    if planes:
        made = planes_in_memory(made)
    if math:
        made = expand_math(made, wide)
    return simplify(legalize(made))
