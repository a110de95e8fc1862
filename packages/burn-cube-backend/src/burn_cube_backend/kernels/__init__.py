"""Kernels by family; importing the package fills the table."""

from burn_cube_backend.kernels import (
    attention as attention,
    conv as conv,
    create as create,
    fourier as fourier,
    grid as grid,
    host as host,
    index as index,
    maps as maps,
    matmul as matmul,
    pooling_extra as pooling_extra,
    quantize as quantize,
    random as random,
    reduce as reduce,
    resample as resample,
    rowwise as rowwise,
    scan as scan,
    scatter as scatter,
    sort as sort,
    unique as unique,
    views as views,
)
