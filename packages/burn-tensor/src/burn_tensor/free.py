"""The methods of `Tensor` as functions: `burn.exp(x)` is `x.exp()`.

Joins and other functions of several tensors stand in `burn_tensor.joins`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from burn_tensor.guard import guarded
from burn_tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def free(method: F) -> F:
    """Return a method as a function whose first argument is called `input`."""
    return guarded(method, module="burn_tensor", first="input")


abs = free(Tensor.abs)
absolute = free(Tensor.absolute)
acos = free(Tensor.acos)
acosh = free(Tensor.acosh)
add = free(Tensor.add)
addcdiv = free(Tensor.addcdiv)
addcmul = free(Tensor.addcmul)
addmm = free(Tensor.addmm)
addmv = free(Tensor.addmv)
addr = free(Tensor.addr)
all = free(Tensor.all)
allclose = free(Tensor.allclose)
amax = free(Tensor.amax)
amin = free(Tensor.amin)
aminmax = free(Tensor.aminmax)
any = free(Tensor.any)
arccos = free(Tensor.arccos)
arccosh = free(Tensor.arccosh)
arcsin = free(Tensor.arcsin)
arcsinh = free(Tensor.arcsinh)
arctan = free(Tensor.arctan)
arctan2 = free(Tensor.arctan2)
arctanh = free(Tensor.arctanh)
argmax = free(Tensor.argmax)
argmin = free(Tensor.argmin)
argsort = free(Tensor.argsort)
argwhere = free(Tensor.argwhere)
asin = free(Tensor.asin)
asinh = free(Tensor.asinh)
atan = free(Tensor.atan)
atan2 = free(Tensor.atan2)
atanh = free(Tensor.atanh)
baddbmm = free(Tensor.baddbmm)
bincount = free(Tensor.bincount)
bitwise_and = free(Tensor.bitwise_and)
bitwise_left_shift = free(Tensor.bitwise_left_shift)
bitwise_not = free(Tensor.bitwise_not)
bitwise_or = free(Tensor.bitwise_or)
bitwise_right_shift = free(Tensor.bitwise_right_shift)
bitwise_xor = free(Tensor.bitwise_xor)
bmm = free(Tensor.bmm)
broadcast_to = free(Tensor.broadcast_to)
cdist = free(Tensor.cdist)
ceil = free(Tensor.ceil)
cholesky = free(Tensor.cholesky)
cholesky_inverse = free(Tensor.cholesky_inverse)
cholesky_solve = free(Tensor.cholesky_solve)
chunk = free(Tensor.chunk)
clamp = free(Tensor.clamp)
clamp_max = free(Tensor.clamp_max)
clamp_min = free(Tensor.clamp_min)
clip = free(Tensor.clip)
clone = free(Tensor.clone)
copysign = free(Tensor.copysign)
corrcoef = free(Tensor.corrcoef)
cos = free(Tensor.cos)
cosh = free(Tensor.cosh)
count_nonzero = free(Tensor.count_nonzero)
cov = free(Tensor.cov)
cross = free(Tensor.cross)
cummax = free(Tensor.cummax)
cummin = free(Tensor.cummin)
cumprod = free(Tensor.cumprod)
cumsum = free(Tensor.cumsum)
deg2rad = free(Tensor.deg2rad)
dequantize = free(Tensor.dequantize)
det = free(Tensor.det)
detach = free(Tensor.detach)
diag = free(Tensor.diag)
diag_embed = free(Tensor.diag_embed)
diagflat = free(Tensor.diagflat)
diagonal = free(Tensor.diagonal)
diagonal_scatter = free(Tensor.diagonal_scatter)
diff = free(Tensor.diff)
digamma = free(Tensor.digamma)
dist = free(Tensor.dist)
div = free(Tensor.div)
divide = free(Tensor.divide)
dot = free(Tensor.dot)
dsplit = free(Tensor.dsplit)
eq = free(Tensor.eq)
equal = free(Tensor.equal)
erf = free(Tensor.erf)
erfc = free(Tensor.erfc)
erfinv = free(Tensor.erfinv)
exp = free(Tensor.exp)
exp2 = free(Tensor.exp2)
expm1 = free(Tensor.expm1)
fill = free(Tensor.fill)
fix = free(Tensor.fix)
flatten = free(Tensor.flatten)
flip = free(Tensor.flip)
fliplr = free(Tensor.fliplr)
flipud = free(Tensor.flipud)
float_power = free(Tensor.float_power)
floor = free(Tensor.floor)
floor_divide = free(Tensor.floor_divide)
fmax = free(Tensor.fmax)
fmin = free(Tensor.fmin)
fmod = free(Tensor.fmod)
frac = free(Tensor.frac)
gather = free(Tensor.gather)
ge = free(Tensor.ge)
ger = free(Tensor.ger)
greater = free(Tensor.greater)
greater_equal = free(Tensor.greater_equal)
gt = free(Tensor.gt)
heaviside = free(Tensor.heaviside)
histc = free(Tensor.histc)
hsplit = free(Tensor.hsplit)
hypot = free(Tensor.hypot)
index_add = free(Tensor.index_add)
index_copy = free(Tensor.index_copy)
index_fill = free(Tensor.index_fill)
index_put = free(Tensor.index_put)
index_select = free(Tensor.index_select)
inner = free(Tensor.inner)
inverse = free(Tensor.inverse)
is_floating_point = free(Tensor.is_floating_point)
isclose = free(Tensor.isclose)
isfinite = free(Tensor.isfinite)
isinf = free(Tensor.isinf)
isnan = free(Tensor.isnan)
isneginf = free(Tensor.isneginf)
isposinf = free(Tensor.isposinf)
kthvalue = free(Tensor.kthvalue)
ldexp = free(Tensor.ldexp)
le = free(Tensor.le)
lerp = free(Tensor.lerp)
less = free(Tensor.less)
less_equal = free(Tensor.less_equal)
lgamma = free(Tensor.lgamma)
log = free(Tensor.log)
log10 = free(Tensor.log10)
log1p = free(Tensor.log1p)
log2 = free(Tensor.log2)
log_softmax = free(Tensor.log_softmax)
logaddexp = free(Tensor.logaddexp)
logaddexp2 = free(Tensor.logaddexp2)
logcumsumexp = free(Tensor.logcumsumexp)
logdet = free(Tensor.logdet)
logical_and = free(Tensor.logical_and)
logical_not = free(Tensor.logical_not)
logical_or = free(Tensor.logical_or)
logical_xor = free(Tensor.logical_xor)
logit = free(Tensor.logit)
logsumexp = free(Tensor.logsumexp)
lt = free(Tensor.lt)
masked_fill = free(Tensor.masked_fill)
masked_scatter = free(Tensor.masked_scatter)
masked_select = free(Tensor.masked_select)
matmul = free(Tensor.matmul)
matrix_exp = free(Tensor.matrix_exp)
matrix_power = free(Tensor.matrix_power)
max = free(Tensor.max)
maximum = free(Tensor.maximum)
mean = free(Tensor.mean)
median = free(Tensor.median)
min = free(Tensor.min)
minimum = free(Tensor.minimum)
mm = free(Tensor.mm)
moveaxis = free(Tensor.moveaxis)
movedim = free(Tensor.movedim)
msort = free(Tensor.msort)
mul = free(Tensor.mul)
multiply = free(Tensor.multiply)
mv = free(Tensor.mv)
mvlgamma = free(Tensor.mvlgamma)
nan_to_num = free(Tensor.nan_to_num)
nanmean = free(Tensor.nanmean)
nansum = free(Tensor.nansum)
narrow = free(Tensor.narrow)
ne = free(Tensor.ne)
neg = free(Tensor.neg)
negative = free(Tensor.negative)
nonzero = free(Tensor.nonzero)
norm = free(Tensor.norm)
not_equal = free(Tensor.not_equal)
numel = free(Tensor.numel)
outer = free(Tensor.outer)
permute = free(Tensor.permute)
pinverse = free(Tensor.pinverse)
prod = free(Tensor.prod)
quantile = free(Tensor.quantile)
quantize = free(Tensor.quantize)
rad2deg = free(Tensor.rad2deg)
ravel = free(Tensor.ravel)
reciprocal = free(Tensor.reciprocal)
relu = free(Tensor.relu)
remainder = free(Tensor.remainder)
repeat_interleave = free(Tensor.repeat_interleave)
reshape = free(Tensor.reshape)
roll = free(Tensor.roll)
rot90 = free(Tensor.rot90)
round = free(Tensor.round)
rsqrt = free(Tensor.rsqrt)
rsub = free(Tensor.rsub)
scatter = free(Tensor.scatter)
scatter_add = free(Tensor.scatter_add)
scatter_reduce = free(Tensor.scatter_reduce)
select = free(Tensor.select)
select_scatter = free(Tensor.select_scatter)
sgn = free(Tensor.sgn)
sigmoid = free(Tensor.sigmoid)
sign = free(Tensor.sign)
signbit = free(Tensor.signbit)
sin = free(Tensor.sin)
sinc = free(Tensor.sinc)
sinh = free(Tensor.sinh)
slice_scatter = free(Tensor.slice_scatter)
slogdet = free(Tensor.slogdet)
softmax = free(Tensor.softmax)
sort = free(Tensor.sort)
split = free(Tensor.split)
split_with_sizes = free(Tensor.split_with_sizes)
sqrt = free(Tensor.sqrt)
square = free(Tensor.square)
squeeze = free(Tensor.squeeze)
std = free(Tensor.std)
std_mean = free(Tensor.std_mean)
sub = free(Tensor.sub)
subtract = free(Tensor.subtract)
sum = free(Tensor.sum)
swapaxes = free(Tensor.swapaxes)
swapdims = free(Tensor.swapdims)
t = free(Tensor.t)
take = free(Tensor.take)
take_along_dim = free(Tensor.take_along_dim)
tan = free(Tensor.tan)
tanh = free(Tensor.tanh)
tensor_split = free(Tensor.tensor_split)
tile = free(Tensor.tile)
topk = free(Tensor.topk)
trace = free(Tensor.trace)
transpose = free(Tensor.transpose)
tril = free(Tensor.tril)
triu = free(Tensor.triu)
true_divide = free(Tensor.true_divide)
trunc = free(Tensor.trunc)
unbind = free(Tensor.unbind)
unflatten = free(Tensor.unflatten)
unique = free(Tensor.unique)
unique_consecutive = free(Tensor.unique_consecutive)
unsqueeze = free(Tensor.unsqueeze)
var = free(Tensor.var)
var_mean = free(Tensor.var_mean)
vdot = free(Tensor.vdot)
vsplit = free(Tensor.vsplit)
xlogy = free(Tensor.xlogy)

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "baddbmm",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "broadcast_to",
    "cdist",
    "ceil",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "deg2rad",
    "dequantize",
    "det",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dsplit",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fill",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "gather",
    "ge",
    "ger",
    "greater",
    "greater_equal",
    "gt",
    "heaviside",
    "histc",
    "hsplit",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inner",
    "inverse",
    "is_floating_point",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kthvalue",
    "ldexp",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nanmean",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nonzero",
    "norm",
    "not_equal",
    "numel",
    "outer",
    "permute",
    "pinverse",
    "prod",
    "quantile",
    "quantize",
    "rad2deg",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "round",
    "rsqrt",
    "rsub",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select",
    "select_scatter",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "slogdet",
    "softmax",
    "sort",
    "split",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor_split",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unique",
    "unique_consecutive",
    "unsqueeze",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "xlogy",
]  # fmt: skip

for _name in __all__:  # by this name they are found again, in pickles and configs
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name
