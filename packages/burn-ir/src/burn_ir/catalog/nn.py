"""Convolution, pooling, resampling, normalisation, attention, losses, quantisation."""

from burn_ir.entry import op
from burn_ir.rules import loss, nn, recurrent

# A table reads better with one entry on as few lines as it needs.
# fmt: off

_CONV = "stride padding dilation groups"
op("conv", "x^ weight^ bias?^", _CONV, nn.conv, "contract",
   "cross-correlation in 1 to 3 dims; x [N, C, *L], weight [O, C/groups, *K]",
   accepts="numeric", cost="compute", autocast="lower")
op("conv_transpose", "x^ weight^ bias?^", "stride padding output_padding dilation groups",
   nn.conv_transpose, "contract", "the adjoint of conv as a layer; weight [C, O/groups, *K]",
   accepts="numeric", cost="compute", autocast="lower", derived="linalg")
op("conv_input_grad", "g^ weight^", _CONV + " shape#", nn.conv_input_grad, "contract",
   "gradient of conv with respect to its input of `shape`", accepts="numeric", cost="compute")
op("conv_weight_grad", "g^ x^", _CONV + " shape#", nn.conv_weight_grad, "contract",
   "gradient of conv with respect to its weight of `shape`", accepts="numeric",
   cost="compute")

op("max_pool", "x", "kernel stride padding dilation ceil", nn.max_pool, "opaque",
   "maximum of windows and its flat index in each plane", accepts="numeric",
   outputs="values indices", edges="nan_propagates ties_lowest", derived="pool")
op("max_pool_backward", "g indices", "kernel stride padding dilation shape#", nn.to_shape, "opaque",
   "g added at the indices of each plane, each in its window (no kernel: anywhere)",
   derived="index")
op("pool_gather", "x indices", "", nn.pool_gather, "index",
   "x at flat indices of each plane: the adjoint of max_pool_backward", derived="index")
op("avg_pool", "x", "kernel stride padding ceil count_include_pad divisor", nn.avg_pool, "opaque",
   "mean of windows", accepts="numeric", derived="pool")
op("avg_pool_backward", "g", "kernel stride padding ceil count_include_pad divisor shape#",
   nn.to_shape, "opaque", "the adjoint of avg_pool", derived="pool")
op("adaptive_avg_pool", "x", "size#", nn.adaptive_pool("adaptive_avg_pool"), "opaque",
   "means of windows that tile the input to `size`", accepts="numeric", derived="pool")
op("adaptive_avg_pool_backward", "g", "shape#", nn.to_shape, "opaque",
   "the adjoint of adaptive_avg_pool", derived="pool")
op("adaptive_max_pool", "x", "size#", nn.adaptive_pool("adaptive_max_pool", pair=True), "opaque",
   "maxima of windows that tile the input to `size`, with flat indices", accepts="numeric",
   outputs="values indices", derived="pool")
op("interpolate", "x", "mode align_corners size# scales#", nn.interpolate, "opaque",
   "resampled to `size`: nearest, nearest-exact, linear, bilinear, bicubic, trilinear",
   accepts="any", grade="optional")
op("interpolate_backward", "g", "mode align_corners size# scales# shape#", nn.to_shape, "opaque",
   "the adjoint of interpolate", grade="optional")
op("grid_sample", "x^ grid^", "mode padding align_corners", nn.grid_sample, "opaque",
   "x sampled at grid: bilinear, nearest, bicubic; zeros, border, reflection",
   accepts="float", grade="optional", closed=False, autocast="f32")
op("grid_sample_backward", "g^ x^ grid^", "mode padding align_corners",
   nn.grid_sample_backward, "opaque", "gradients of grid_sample: (x, grid)",
   outputs="dx dgrid", grade="optional", differentiable=False)
op("unfold", "x", "kernel dilation padding stride", nn.unfold, "opaque", "windows as columns",
   derived="pool")
op("fold", "x", "kernel dilation padding stride size#", nn.fold, "opaque",
   "columns back to windows; overlaps add up", derived="pool")

op("softmax", "x", "dim dtype", nn.softmax("softmax"), "opaque", "exp(x) / sum(exp(x))",
   autocast="f32", derived="reduce")
op("log_softmax", "x", "dim dtype", nn.softmax("log_softmax"), "opaque", "log(softmax(x))",
   autocast="f32", derived="reduce")
op("layer_norm", "x^ weight?^ bias?^", "dims eps@", nn.normalized("layer_norm"), "opaque",
   "normalised over the last dims, scaled and shifted: (out, mean, rstd)", accepts="float",
   outputs="out mean rstd", autocast="f32", derived="norm")
op("rms_norm", "x^ weight?^", "dims eps@", nn.normalized("rms_norm"), "opaque",
   "x / sqrt(mean(x^2) + eps) * weight over the last dims: (out, rstd)", accepts="float",
   outputs="out rstd", autocast="f32", derived="norm")
op("group_norm", "x^ weight?^ bias?^", "groups eps@", nn.group_norm, "opaque",
   "normalised over groups of channels: (out, mean, rstd)", accepts="float",
   outputs="out mean rstd", autocast="f32", derived="norm")
op("batch_norm", "x weight? bias? mean? var?", "training eps@", nn.batch_norm, "opaque",
   "normalised per channel: (out, mean, biased variance) of the batch or as given",
   accepts="float", outputs="out used_mean used_var", derived="norm")
op("batch_norm_backward", "g x weight? mean var", "training eps@", nn.batch_norm_backward, "opaque",
   "gradients of batch_norm through its output: (x, weight, bias)", accepts="float",
   outputs="gx gweight gbias", differentiable=False, derived="norm")
op("attention", "q^ k^ v^ mask?", "causal gqa scale@", nn.attention, "opaque",
   "softmax(q k^T scale + mask) v; a row masked everywhere is 0: (out, log2 of sum(exp(scores)))",
   accepts="float", outputs="out sums", cost="compute", autocast="lower", edges="masked_row_zero",
   closed=True, derived="norm")
op("attention_backward", "g^ q^ k^ v^ mask? out^ sums", "causal gqa scale@", nn.attention_backward,
   "opaque", "gradients of attention: (q, k, v, scores after scale and mask)",
   outputs="dq dk dv dscores", cost="compute", differentiable=False, derived="norm")
op("recurrent", "x^ h^ c?^ weight_ih^ weight_hh^ bias_ih?^ bias_hh?^ lengths?",
   "cell reverse keep", recurrent.recurrent, "opaque",
   "a layer over a sequence, lstm, gru, rnn_tanh or rnn_relu: (out, last, last cell, gates, cells)",
   accepts="float", outputs="out last last_cell gates cells", cost="compute", autocast="lower",
   derived="recurrent")
op("recurrent_backward",
   "weight_hh^ h^ c?^ out^ gates^ cells^ g?^ g_last?^ g_last_cell?^ g_gates?^ g_cells?^ lengths?",
   "cell reverse first", recurrent.recurrent_backward, "opaque",
   "gradients of what goes into the gates of recurrent, and of its first states if `first`",
   accepts="float", outputs="d_gates d_hidden dh dc", cost="compute", differentiable=False,
   derived="recurrent")
op("recurrent_weights", "d_gates^ d_hidden?^ x^ h^ out^ lengths?",
   "reverse inputs states biases", recurrent.recurrent_weights, "opaque",
   "gradients of recurrent's weights and biases, of those that are wanted",
   accepts="float", outputs="dw_ih dw_hh db_ih db_hh", cost="compute", differentiable=False,
   derived="recurrent")

for _name, _inputs, _attrs, _doc in (
    ("mse_loss", "x^ target^", "reduction", "(x - target)^2"),
    ("l1_loss", "x^ target^", "reduction", "|x - target|"),
    ("smooth_l1_loss", "x^ target^", "reduction beta@",
     "d^2 / (2 beta) for |d| < beta, else |d| - beta / 2"),
    ("huber_loss", "x^ target^", "reduction delta@",
     "d^2 / 2 for |d| < delta, else delta (|d| - delta / 2)"),
    ("binary_cross_entropy", "x^ target^ weight?^", "reduction",
     "-(t log x + (1 - t) log(1 - x)), logs capped at -100"),
    ("binary_cross_entropy_with_logits", "x^ target^ weight?^ pos_weight?^", "reduction",
     "binary cross-entropy of sigmoid(x), stable"),
    ("kl_div", "x^ target^", "reduction log_target", "target (log target - x)"),
):
    op(_name, _inputs, _attrs, loss.loss(_name, "float"), "opaque", _doc, accepts="float",
       autocast="f32", derived="loss")
op("nll_loss", "x target weight?", "reduction ignore_index#", loss.nll_loss, "opaque",
   "-weight[t] x[t] of log-probabilities", accepts="float", autocast="f32",
   edges="ignored_nan", derived="loss")
op("cross_entropy", "x target weight?", "reduction dtype ignore_index# label_smoothing@",
   loss.cross_entropy, "opaque", "nll_loss of log_softmax over classes, or soft targets, in dtype",
   accepts="float", autocast="wide", edges="ignored_nan", derived="loss")
op("cross_entropy_backward", "g x target weight?", "reduction dtype ignore_index# label_smoothing@",
   loss.cross_entropy_backward, "opaque", "gradient of cross_entropy by x, for class indices",
   accepts="float", edges="ignored_nan", differentiable=False, derived="loss")
op("ctc_loss", "log_probs targets input_lengths target_lengths", "blank", loss.ctc_loss, "opaque",
   "connectionist temporal classification: (loss per sample, gradient)", accepts="float",
   outputs="loss grad", grade="optional", closed=False, autocast="f32")

op("quantize", "x scale? zero?", "dtype", nn.quantize, "opaque",
   "x in a quantised dtype; scale None takes it from the range of x", accepts="float",
   grade="optional")
op("dequantize", "q", "dtype", nn.dequantize, "opaque", "floats of a quantised tensor",
   accepts="quant", grade="optional")
op("quantized_matmul", "x^ weight! bias?^", "transpose", nn.quantized_matmul, "contract",
   "x times the floats of a quantised matrix, or of its transpose, plus bias", accepts="float",
   cost="compute", autocast="lower", derived="linalg")
