"""The plain meaning of core and optional primitives, in numpy: what flex itself is tested against.

Written for being obviously right: loops, float64, no shared code with any backend. Maps come from
their scalar expressions. Derived operations need none: their decomposition is the reference.
"""

from burn_testing.oracle import (  # noqa: F401 - importing fills the table
    index,
    linalg,
    nn,
    random,
    reduce,
    shape,
)
from burn_testing.oracle.maps import map_oracle as map_oracle
from burn_testing.oracle.table import ORACLES as ORACLES, oracle as oracle
