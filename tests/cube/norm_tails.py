"""A program for `test_norm_tails`: batch norm as one operation on OpenCL, with what reads it.

It says how many programs had the bits of single kernels, and what the units were.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

import burn
import burn_cube_backend.kernels  # noqa: F401 - registers what is changed next
from burn_cube_backend.table import MAKERS

for _name in ("batch_norm", "batch_norm_backward"):
    MAKERS[_name] = MAKERS[_name]._replace(runtime="opencl")

F = burn.functional
Program = Callable[[Any, Any], Any]


def norm(x: Any, w: Any, training: bool) -> Any:
    c = x.shape[1]
    mean, var = burn.zeros(c, device=x.device), burn.ones(c, device=x.device)
    return F.batch_norm(x, mean, var, w, w, training=training)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda n, r: F.relu(n),
    "residual": lambda n, r: F.relu(n + r),
    "kept": lambda n, r: (n, F.relu(n * 2)),
    "two": lambda n, r: ((z := n + r), z.sigmoid() * z),
    "wider": lambda n, r: n * (burn.cat([r, r]) if r.shape[0] == 1 else r[:1]),
    "wider, kept": lambda n, r: (n, n * (burn.cat([r, r]) if r.shape[0] == 1 else r[:1])),
    "cast": lambda n, r: (n.to(burn.float64) * 2).to(burn.float32) + 1,
    # The second operand is computed from the first: nothing can go into one kernel.
    "circle": lambda n, r: n + n.softmax(-1),
    "read by rows": lambda n, r: n.sum(-1),
}


def main() -> None:
    """Compare all programs with eager ones."""
    warnings.simplefilter("ignore", burn.PlanChurnWarning)
    rng, same = np.random.default_rng(1), 0
    shapes = [(1, 4, 5, 6), (4, 3), (2, 8, 7)]
    kinds = itertools.product(
        shapes, PROGRAMS, (True, False), (True, False), ("float32", "float16")
    )
    for shape, name, training, weighted, dtype in kinds:
        found = []
        arrays = [rng.standard_normal(s).astype(np.float32) for s in (shape, shape, shape[1:2])]
        for device in ("eager-opencl", "opencl"):
            x, r, w = (burn.tensor(a, device=burn.device(device)) for a in arrays)
            x, r = x.to(getattr(burn, dtype)), r.to(getattr(burn, dtype))
            if name == "cast" and dtype == "float16":
                r = r.to(burn.float32)
            made = PROGRAMS[name](norm(x, w if weighted else None, training), r)
            outs = made if isinstance(made, tuple) else (made,)
            found.append([o.to(burn.float32).numpy().tobytes() for o in outs])
        assert found[0] == found[1], (shape, name, training, weighted, dtype)
        same += 1
    device = burn.device("opencl")
    x, r, w = (burn.tensor(a, device=device) for a in arrays)
    told = burn.explain(lambda x, r, w: F.relu(norm(x, w, True) + r), x, r, w)
    units = [k.operations for p in told.plans for k in p.kernels if "batch_norm" in k.operations]
    print(same, units)
    tracked = device.autodiff()
    y = burn.tensor(arrays[0], device=tracked).require_grad()
    slopes = []
    for scope in (burn.no_fusion, nullcontext):
        with scope():
            slopes.append(y.grad((F.relu(norm(y, w, True) + r) * r).sum().backward()).numpy())
    assert slopes[0].tobytes() == slopes[1].tobytes()


if __name__ == "__main__":
    main()
