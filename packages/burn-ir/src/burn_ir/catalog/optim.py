"""Updates of many parameters as one operation; `skip` (bool, rank 0) leaves all as it was."""

from burn_ir.entry import op
from burn_ir.rules import optim as rules

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("sgd_step", "params* grads* momenta* step skip?",
   "nesterov maximize lr@ momentum@ dampening@ weight_decay@", rules.update, "opaque",
   "SGD: new params, momenta, step", outputs="list", differentiable=False, derived="optim")
op("adam_step", "params* grads* exp_avgs* exp_avg_sqs* max_sqs* step skip?",
   "decoupled maximize lr@ beta1@ beta2@ eps@ weight_decay@", rules.update, "opaque",
   "Adam and AdamW (decoupled): new params, both averages, maxima (AMSGrad), step",
   outputs="list", differentiable=False, derived="optim")
op("rmsprop_step", "params* grads* square_avgs* grad_avgs* momenta* step skip?",
   "maximize lr@ alpha@ eps@ weight_decay@ momentum@", rules.update, "opaque",
   "RMSprop: new params, squares, averages (centered), momenta, step",
   outputs="list", differentiable=False, derived="optim")
op("adagrad_step", "params* grads* sums* step skip?",
   "maximize lr@ lr_decay@ eps@ weight_decay@", rules.update, "opaque",
   "Adagrad: new params, sums of squares, step",
   outputs="list", differentiable=False, derived="optim")
op("adadelta_step", "params* grads* square_avgs* acc_deltas* step skip?",
   "maximize lr@ rho@ eps@ weight_decay@", rules.update, "opaque",
   "Adadelta: new params, squares, squared moves, step",
   outputs="list", differentiable=False, derived="optim")
op("adamax_step", "params* grads* exp_avgs* exp_infs* step skip?",
   "maximize lr@ beta1@ beta2@ eps@ weight_decay@", rules.update, "opaque",
   "Adamax: new params, averages, decaying maxima, step",
   outputs="list", differentiable=False, derived="optim")
op("lion_step", "params* grads* exp_avgs* step skip?",
   "maximize lr@ beta1@ beta2@ weight_decay@", rules.update, "opaque",
   "Lion: new params, averages, step", outputs="list", differentiable=False, derived="optim")
op("asgd_step", "params* grads* averages* step skip?",
   "maximize lr@ lambd@ alpha@ t0@ weight_decay@", rules.update, "opaque",
   "averaged SGD: new params, their averages, step",
   outputs="list", differentiable=False, derived="optim")
op("rprop_step", "params* grads* prevs* step_sizes* step skip?",
   "maximize lr@ etaminus@ etaplus@ least@ most@", rules.update, "opaque",
   "Rprop: new params, gradients taken, step sizes (0: not begun), step",
   outputs="list", differentiable=False, derived="optim")
op("nadam_step", "params* grads* exp_avgs* exp_avg_sqs* step mu_product skip?",
   "decoupled maximize lr@ beta1@ beta2@ eps@ weight_decay@ momentum_decay@",
   rules.update, "opaque", "NAdam: new params, both averages, step, product of momenta",
   outputs="list", differentiable=False, derived="optim_adaptive")
op("radam_step", "params* grads* exp_avgs* exp_avg_sqs* step skip?",
   "decoupled maximize lr@ beta1@ beta2@ eps@ weight_decay@", rules.update, "opaque",
   "RAdam: new params, both averages, step",
   outputs="list", differentiable=False, derived="optim_adaptive")
op("adan_step", "params* grads* exp_avgs* exp_avg_diffs* exp_avg_sqs* previous* step skip?",
   "no_prox lr@ beta1@ beta2@ beta3@ eps@ weight_decay@", rules.update, "opaque",
   "Adan: new params, the three averages, last gradients, step",
   outputs="list", differentiable=False, derived="optim_adaptive")
op("lamb_step", "params* grads* exp_avgs* exp_avg_sqs* step skip?",
   "maximize lr@ beta1@ beta2@ eps@ weight_decay@", rules.update, "opaque",
   "LAMB: new params, both averages, step",
   outputs="list", differentiable=False, derived="optim_matrix")
op("adafactor_step", "params* grads* rows* columns* variances* step skip?",
   "maximize lr@ beta2_decay@ eps1@ eps2@ d@ weight_decay@", rules.adafactor, "opaque",
   "Adafactor: new params, means of rows and columns or whole squares, step",
   outputs="list", differentiable=False, derived="optim_matrix")
op("muon_step", "params* grads* momenta* step skip?",
   "nesterov match_rms steps lr@ momentum@ weight_decay@ a@ b@ c@ eps@", rules.muon, "opaque",
   "Muon: new params, momenta, step", outputs="list", differentiable=False,
   cost="compute", derived="optim_matrix")
op("norm_all", "xs*", "p@", rules.norm, "opaque",
   "p-norm over the elements of all tensors", accepts="float", differentiable=False,
   derived="many")
op("scale_all", "xs* factor", "", rules.scale, "opaque",
   "every tensor times one number", accepts="float", outputs="list", differentiable=False,
   derived="many")
op("add_scaled_all", "xs* ys* factor", "", rules.paired("add_scaled_all"), "opaque",
   "x + factor y, pairwise", accepts="float", outputs="list", differentiable=False, derived="many")
op("lerp_all", "xs* ys* weight", "", rules.paired("lerp_all"), "opaque",
   "x + weight (y - x), pairwise", accepts="float", outputs="list", differentiable=False,
   derived="many")
