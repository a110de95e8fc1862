"""Print what the kernel becomes on each target; needs no device of its kind.

python examples/custom_kernel/sources.py [cpu | opencl | cuda]
"""

from __future__ import annotations

import sys

from operation import fused

from burn_std.dtypes import float32


def main() -> None:
    """Print the source for the targets that are named, or for all."""
    for target in sys.argv[1:] or ["cpu", "opencl", "cuda"]:
        arrays = [float32] * 4
        print(fused.source(target, *arrays, 1, 1, bounds="unchecked", acc=float32, lanes=4))


if __name__ == "__main__":
    main()
