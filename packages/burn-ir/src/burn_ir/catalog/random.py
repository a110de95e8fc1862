"""Counter-based random numbers; `key` is (seed, counter), assigned when the call is made."""

from burn_ir.entry import op
from burn_ir.rules import basic as r

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("uniform", "", "dtype shape# low@ high@ key@", r.created("uniform", "float"), "random",
   "uniform floats in [low, high) on the dtype's own grid", differentiable=False)
op("normal", "", "dtype shape# mean@ std@ key@", r.created("normal", "float"), "random",
   "normal floats by Box-Muller", differentiable=False)
op("randint", "", "dtype shape# low@ high@ key@", r.created("randint"), "random",
   "integers in [low, high)", differentiable=False)
op("randperm", "", "dtype count# key@", r.counted("randperm"), "random",
   "a permutation: stable sort of 64-bit keys", differentiable=False, grade="optional")
op("bernoulli", "p", "key@", r.unary("bernoulli", "float"), "random",
   "1 where a uniform of f32 (f64 for f64) is below p, else 0", accepts="float",
   differentiable=False, derived="random")
op("dropout", "x", "p@ key@", r.unary("dropout", "float"), "random",
   "0 where a uniform of f32 (f64 for f64) is below p, else x / (1 - p); the key gives the mask",
   accepts="float", derived="random")
