"""Products, factorisations and transforms."""

from burn_ir.entry import op
from burn_ir.rules import basic as r, linalg as la

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("matmul", "x^ y^", "", r.matmul, "contract", "matrix product, batched and broadcast",
   accepts="numeric", cost="compute", autocast="lower", edges="int_wraps empty_zero")
op("linear", "x^ weight^ bias?^", "", r.linear, "contract", "x @ weight.T + bias",
   accepts="numeric", cost="compute", autocast="lower", derived="linalg")
op("cross", "x^ y^", "dim", la.cross, "opaque", "cross product of 3-vectors along a dim",
   accepts="numeric", derived="linalg")
op("det", "x", "", la.square_matrix("det", "batch"), "opaque", "determinant", accepts="float",
   cost="compute", grade="optional")
op("inverse", "x", "", la.square_matrix("inverse", "same"), "opaque", "matrix inverse",
   accepts="float", cost="compute", derived="linalg")
op("solve", "a^ b^", "", la.solve, "opaque", "x with a x = b", accepts="float", cost="compute",
   grade="optional")
op("triangular_solve", "a^ b^", "upper transpose unit", la.solve, "opaque",
   "x with a x = b (or a^T x = b) for triangular a", accepts="float", cost="compute",
   grade="optional")
op("lu", "x", "pivot", la.lu, "opaque", "x = P L U", accepts="float", cost="compute",
   outputs="P L U", grade="optional")
op("qr", "x", "mode", la.qr, "opaque", "x = Q R", accepts="float", cost="compute",
   outputs="Q R", grade="optional")
op("svd", "x", "full", la.svd, "opaque", "x = U diag(S) Vh", accepts="float", cost="compute",
   outputs="U S Vh", grade="optional")
op("cholesky", "x", "upper", la.square_matrix("cholesky", "same"), "opaque",
   "L with x = L L^T, or U with x = U^T U; reads that triangle alone", accepts="float",
   cost="compute", grade="optional")
op("eigh", "x", "upper", la.eigh, "opaque",
   "eigenvalues, ascending, and eigenvectors of symmetric x; reads one triangle alone",
   accepts="float", cost="compute", outputs="eigenvalues eigenvectors", grade="optional")
op("rfft", "x", "dim norm n#", la.rfft, "opaque", "real Fourier transform: (real, imag)",
   accepts="float", lift=True, outputs="real imag", grade="optional", autocast="f32")
op("irfft", "real^ imag?^", "dim norm n#", la.irfft, "opaque",
   "inverse of rfft; imag None is zero", accepts="float", lift=True, grade="optional",
   autocast="f32")
op("rfft_backward", "greal gimag", "dim norm n#",
   la.irfft, "opaque", "the adjoint of rfft",
   accepts="float", derived="linalg")
op("irfft_backward", "g", "dim norm bins#",
   la.irfft_backward,
   "opaque", "the adjoint of irfft: (real, imag)", accepts="float", outputs="real imag",
   derived="linalg")
