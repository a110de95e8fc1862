"""Updates of many parameters as one operation; `skip` (bool, rank 0) leaves all as it was."""

from burn_ir.entry import op
from burn_ir.rules import nn

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("sgd_step", "params* grads* momenta* step skip?",
   "nesterov maximize lr@ momentum@ dampening@ weight_decay@", nn.update, "opaque",
   "SGD: new params, momenta, step", outputs="list", differentiable=False, derived="optim")
op("adam_step", "params* grads* exp_avgs* exp_avg_sqs* max_sqs* step skip?",
   "decoupled maximize lr@ beta1@ beta2@ eps@ weight_decay@", nn.update, "opaque",
   "Adam and AdamW (decoupled): new params, both averages, maxima (AMSGrad), step",
   outputs="list", differentiable=False, derived="optim")
