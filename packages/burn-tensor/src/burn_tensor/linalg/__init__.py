"""Linear algebra: `burn.linalg`, with PyTorch's names and arguments."""

from typing import TYPE_CHECKING

from burn_std import missing_name as _missing_name
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

if not TYPE_CHECKING:
    # What PyTorch has under this name, and what to write instead.
    _OTHERWISE = {
        "eig": "Its results are complex, and there is no complex dtype; for symmetric matrices use "
        "burn.linalg.eigh(x).",
        "eigvals": "They are complex, and there is no complex dtype; for symmetric matrices use "
        "burn.linalg.eigvalsh(x).",
        "LinAlgError": "Catch burn.ExecutionError.",
        "lu_factor": "Use burn.linalg.lu(A).",
        "lu_solve": "Use burn.linalg.solve(A, B).",
        "cholesky_ex": "Use burn.linalg.cholesky(A), and catch burn.ExecutionError.",
        "inv_ex": "Use burn.linalg.inv(A), and catch burn.ExecutionError.",
        "solve_ex": "Use burn.linalg.solve(A, B), and catch burn.ExecutionError.",
        "ldl_factor": "Use burn.linalg.cholesky(A), or burn.linalg.eigh(A).",
        "householder_product": "Use burn.linalg.qr(A).Q.",
        "tensorsolve": "Reshape to matrices, and use burn.linalg.solve(A, B).",
        "tensorinv": "Reshape to matrices, and use burn.linalg.inv(A).",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.linalg", name, __all__, _OTHERWISE)
