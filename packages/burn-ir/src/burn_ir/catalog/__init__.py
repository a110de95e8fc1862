"""The catalogue, one module per family; importing this package fills `CATALOG`."""

from burn_ir.catalog import (
    index as index,
    linalg as linalg,
    maps as maps,
    nn as nn,
    optim as optim,
    random as random,
    reduce as reduce,
    shape as shape,
    special as special,
)
