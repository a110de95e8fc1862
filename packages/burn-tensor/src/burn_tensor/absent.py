"""What to write instead of the attributes that PyTorch's tensors have and these have not.

They stand on the class, see `burn_std.Absent`. Names of complex, sparse, stored and distributed
tensors are answered by their reason.
"""

from __future__ import annotations

from collections.abc import Iterable

_VIEW = "Layouts are not part of a tensor's value: views, copies and strides give the same results."
_DEVICE = "Look at x.device."
_STORAGE = "Storage is private to a backend: use x.numpy() or DLPack."
_COMPLEX = (
    "There is no complex dtype: keep real and imaginary parts as two tensors, as burn.fft does."
)
_SPARSE = "There are no sparse tensors: keep indices and values, and use index_add or scatter."
_QUANT = "A quantised tensor's scheme is its dtype, and x.dequantize() gives its values."
_HOOK = "Gradients are a value: read and change it between backward and opt.step."

_GROUPS: dict[str, str] = {
    "stride dim_order is_set_to layout as_strided as_strided_scatter "
    "new_empty_strided slice_inverse": _VIEW,
    "is_cuda is_cpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu "
    "get_device": _DEVICE,
    "ipu xpu mtia to_mkldnn": "Use x.to_device(device).",
    "data_ptr const_data_ptr storage storage_offset storage_type untyped_storage is_shared "
    "share_memory_ pin_memory is_pinned set_ record_stream": _STORAGE,
    "H mH angle conj conj_physical imag real is_complex is_conj resolve_conj isreal cfloat cdouble "
    "chalf resolve_neg is_neg conj_physical_": _COMPLEX,
    "is_sparse is_sparse_csr to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc "
    "to_sparse_csr to_dense sparse_dim dense_dim sparse_mask sparse_resize_ "
    "sparse_resize_and_clear_ coalesce is_coalesced indices values row_indices col_indices "
    "crow_indices ccol_indices smm sspaddmm resize_as_sparse_": _SPARSE,
    "q_scale q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points "
    "qscheme int_repr": _QUANT,
    "register_hook register_post_accumulate_grad_hook retain_grad retains_grad": _HOOK,
    "is_nested to_padded_tensor": "There are no nested tensors: pad, and pass a mask.",
    "resize resize_as resize_ resize_as_": "Use x.reshape(shape), or "
    "burn.functional.pad to change the number of elements.",
}  # fmt: skip

OTHERWISE: dict[str, str] = {
    name: remedy for names, remedy in _GROUPS.items() for name in names.split()
} | {
    "data": "Use x.detach().",
    "requires_grad": "Ask x.is_require_grad(); mark with x = x.require_grad().",
    "requires_grad_": "Write x = x.require_grad().",
    "is_leaf": "Ask x.is_require_grad().",
    "grad_fn": "Ask x.is_tracked().",
    "grad_dtype": "A gradient has its tensor's dtype.",
    "output_nr": "Ask x.is_tracked().",
    "is_inference": "Ask x.is_tracked().",
    "zero_grad": "Gradients are values that nothing accumulates into.",
    "cuda": "Use x.to_device(burn.Device.cuda()).",
    "numpy_": "Use x.numpy().",
    "eval": "Use model.valid() for inference.",
    "name": "Tensors have no names; modules name their parameters.",
    "names": "Dims have no names; count them.",
    "volatile": "Use burn.no_grad().",
    "is_distributed": "Tensors of one device are never distributed.",
    "reinforce": "Write the estimator as a loss of log-probabilities.",
    "module_load": "Use model.load_state_dict(state).",
    "as_subclass": "Tensor is the only class of tensors; wrap it.",
    "new": "Use x.new_empty(size).",
    "type": "Use x.dtype, or x.to(dtype).",
    "is_contiguous": "Drop the question: x.view works on every tensor, and no result depends on "
    "strides.",
    # ---- in place
    "copy_": "Bind the name to the other tensor, or write x[...] = other.",
    "zero_": "Write x = burn.zeros_like(x).",
    "fill_": "Write x = x.fill(value).",
    "fill_diagonal_": "Write x = burn.where(burn.eye(n, m, dtype=burn.bool_), value, x).",
    "detach_": "Write x = x.detach().",
    "apply_": "Write the function in tensor operations, or loop over x.tolist().",
    "map_": "Write the function in tensor operations.",
    "map2_": "Write the function in tensor operations.",
    "put_": "Write y = x.ravel(); y[index] = source; x = y.reshape(x.shape).",
    "put": "Write y = x.ravel(); y[index] = source; y.reshape(x.shape).",
    "rename_": "Dims have no names.",
    "normal_": "Write x = burn.randn(...), or burn.nn.init.normal_(param).",
    "uniform_": "Write x = burn.rand(...), or burn.nn.init.uniform_(param).",
    "random_": "Write x = burn.randint(low, high, x.shape).",
    "bernoulli_": "Write x = burn.bernoulli(p).",
    "exponential_": "Write x = -burn.log1p(-burn.rand(...)) / rate.",
    "geometric_": "Write x = (burn.log1p(-burn.rand(...)) / math.log1p(-p)).ceil().",
    "cauchy_": "Write x = median + sigma * burn.tan(math.pi * (burn.rand(...) - 0.5)).",
    "log_normal_": "Write x = burn.exp(mean + std * burn.randn(...)).",
    # ---- functions elsewhere
    "adjoint": "Use x.mT.",
    "lu": "Use burn.linalg.lu(x).",
    "lu_solve": "Use burn.linalg.solve(a, b).",
    "qr": "Use burn.linalg.qr(x).",
    "geqrf": "Use burn.linalg.qr(x).",
    "orgqr": "Use burn.linalg.qr(x).Q.",
    "ormqr": "Use burn.linalg.qr(x).Q @ y.",
    "svd": "Use burn.linalg.svd(x).",
    "lstsq": "Use burn.linalg.lstsq(a, b).",
    "solve": "Use burn.linalg.solve(a, b).",
    "triangular_solve": "Use burn.linalg.solve_triangular(a, b, upper=True).",
    "eig": "Its results are complex, and there is no complex dtype; for symmetric matrices use "
    "burn.linalg.eigh(x).",
    "symeig": "Use burn.linalg.eigh(x).",
    "prelu": "Use burn.functional.prelu(x, weight).",
    "hardshrink": "Use burn.functional.hardshrink(x).",
    "stft": "Use burn.stft(x, n_fft), which gives real and imaginary parts.",
    "istft": "Use burn.istft((real, imag), n_fft).",
    # ---- written out
    "addbmm": "Write x + (a @ b).sum(0).",
    "frexp": "Write e = x.abs().log2().floor() + 1 and m = x / 2**e.",
    "gcd": "Compute it on the host with numpy.gcd.",
    "lcm": "Compute it on the host with numpy.lcm.",
    "hash_tensor": "Hash x.numpy().tobytes().",
    "histogram": "Use x.histc(bins, min, max).",
    "i0": "There are no Bessel functions.",
    "igamma": "There is no incomplete gamma function.",
    "igammac": "There is no incomplete gamma function.",
    "index": "Write x[key].",
    "index_reduce": "Use x.scatter_reduce(dim, index, source, reduce).",
    "is_nonzero": "Write bool(x).",
    "is_quantized": "Ask x.dtype.is_quantized.",
    "is_signed": "Ask x.dtype.is_signed.",
    "is_same_size": "Compare x.shape == y.shape.",
    "mode": "Use x.unique(return_counts=True).",
    "nanmedian": "Use x[~x.isnan()].median().",
    "nanquantile": "Use x[~x.isnan()].quantile(q).",
    "narrow_copy": "Use x.narrow(dim, start, length).",
    "nextafter": "Compute it on the host with numpy.nextafter.",
    "nonzero_static": "Use x.nonzero(), and pad it.",
    "positive": "Write x.",
    "renorm": "Write x * (maxnorm / norms).clamp_max(1).",
    "unsafe_split_with_sizes": "Use x.split(sizes, dim).",
    "unsafe_split": "Use x.split(size, dim).",
    "unsafe_chunk": "Use x.chunk(n, dim).",
    "sum_to_size": "Use x.sum(dims, keepdim=True).",
    "__delitem__": "Select the elements to keep.",
    "__div__": "Write x / y.",
    "__rdiv__": "Write y / x.",
    "__idiv__": "Write x = x / y.",
    "__nonzero__": "Write bool(x).",
    "__long__": "Write int(x).",
}  # fmt: skip


def remedies(names: Iterable[str]) -> dict[str, str]:
    """Return what to write instead of attributes that tensors lack.

    Args:
        names: the methods; under a name with an underscore behind it PyTorch changes the tensor.
    """
    still = "Values never change in place."
    out = {f"{n}_": f"{still} Write x = x.{n}(...)." for n in names}
    out |= {f"{n}_": f"{still} {said}" for n, said in OTHERWISE.items() if n[-1] != "_"}
    return out | OTHERWISE
