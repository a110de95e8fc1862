"""The kernels, one module per family; importing this package fills `burn_flex.table.KERNELS`."""

from burn_flex.kernels import (
    activation as activation,
    cast as cast,
    index as index,
    maps as maps,
    pad as pad,
    random as random,
    reduce as reduce,
    scan as scan,
    scatter as scatter,
    shape as shape,
    sort as sort,
)
