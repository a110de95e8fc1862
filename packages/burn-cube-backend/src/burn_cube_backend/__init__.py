"""The tensor backend written in burn-cube; reached by its entry points in `burn.backends`.

What is public serves packages that bring kernels for operations of their own, or a runtime.
"""

from burn_cube_backend.engine import Engine as Engine
from burn_cube_backend.payload import CubeTensor as CubeTensor
from burn_cube_backend.plugin import CubeBackend as CubeBackend
from burn_cube_backend.table import kernel as kernel
