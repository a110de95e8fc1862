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
from burn_tensor.linalg.least import (
    LeastSquares,
    lstsq,
    matrix_exp,
    vander,
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
from burn_tensor.linalg.symmetric import (
    Eigh,
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    eigh,
    eigvalsh,
)

__all__ = [  # noqa: RUF022 - sorted as text, as the other namespaces are
    "Eigh",
    "LU",
    "LeastSquares",
    "QR",
    "SVD",
    "SlogDet",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "matrix_exp",
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
    "vander",
    "vecdot",
    "vector_norm",
]

guard_names(globals(), __all__)
