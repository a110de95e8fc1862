"""Small kernels with their expected results: what a runtime must get right.

`cases()` gives them all; `check(case, client)` runs one on a device. A runtime of a third party is
tested the same way as the ones here.
"""

from burn_cube.conformance.case import (
    Case as Case,
    check as check,
    interpreted as interpreted,
    run_on as run_on,
)
from burn_cube.conformance.catalog import cases as cases
