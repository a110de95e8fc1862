"""Counter-based random numbers; `key` is (seed, counter), assigned when the call is made."""

from burn_ir.entry import op
from burn_ir.rules import basic as r

op("uniform", "", "dtype shape# low@ high@ key@", r.created("uniform"), "random",
   "uniform floats in [low, high) on the dtype's own grid", differentiable=False)  # fmt: skip
op("normal", "", "dtype shape# mean@ std@ key@", r.created("normal"), "random",
   "normal floats by Box-Muller", differentiable=False)  # fmt: skip
op("randint", "", "dtype shape# low@ high@ key@", r.created("randint"), "random",
   "integers in [low, high)", differentiable=False)  # fmt: skip
op("randperm", "", "dtype count# key@", r.arange, "random",
   "a permutation: stable sort of 64-bit keys", differentiable=False, grade="optional")  # fmt: skip
op("bernoulli", "p", "key@", r.unary("bernoulli", "float"), "random",
   "1 with probability p, else 0", accepts="float", differentiable=False)  # fmt: skip
op("dropout", "x", "p@ key@", r.unary("dropout", "float"), "random",
   "x / (1 - p) with probability 1 - p, else 0; the mask is recomputed from the key",
   accepts="float")  # fmt: skip
