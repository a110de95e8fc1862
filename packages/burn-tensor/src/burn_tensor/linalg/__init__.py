"""Linear algebra: `burn.linalg`, with PyTorch's names and arguments."""

from burn_tensor.guard import guard_names
from burn_tensor.linalg.factor import (
    LU,
    QR,
    SVD,
    lu,
    qr,
    svd,
    svdvals,
)
from burn_tensor.linalg.norm import (
    matrix_norm,
    norm,
    vector_norm,
)
from burn_tensor.linalg.product import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    multi_dot,
    vecdot,
)
from burn_tensor.linalg.solve import (
    SlogDet,
    cond,
    det,
    inv,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)

__all__ = [
    "LU",
    "QR",
    "SVD",
    "SlogDet",
    "cond",
    "cross",
    "det",
    "diagonal",
    "inv",
    "lu",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]

guard_names(globals(), __all__)
