"""Adapters: how a tensor of the model stands in a file of another framework or precision.

Modules here have PyTorch's names and layouts, so PyTorch's files need no adapter. An adapter says,
for each tensor of the model, which pieces of it the file holds: under which name, which rows,
transposed or not, in which dtype. The same pieces serve loading and saving.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from burn_std import DType
from burn_store.leaves import Leaf


class Piece(NamedTuple):
    """A tensor in a file that is a model's tensor or some rows of it.

    Attributes:
        name: in the file.
        rows: (first, behind the last) along dim 0; None for all of it.
        transposed: the file holds the matrix transposed.
        dtype: name of the dtype to save it in; None for the model's.
    """

    name: str
    rows: tuple[int, int] | None = None
    transposed: bool = False
    dtype: str | None = None


class Adapter(Protocol):
    """What `load` and `save` take as `adapter=`."""

    def adapt(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces of a tensor; empty if the file does not hold it.

        Args:
            leaf: the tensor with its path and modules.
            pieces: what an adapter before made; at first the tensor as it is, under its path.
        """
        ...


class TorchLayout:
    """PyTorch's names and layouts, which are those of the modules here: nothing changes.

    Example:
        >>> TorchLayout().adapt(None, (Piece("fc.weight"),))[0].name
        'fc.weight'
    """

    def adapt(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces as they are."""
        return pieces


_NORMS = {
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "RMSNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
}  # fmt: skip
_GATES = {
    "RNN": ("gate",),
    "LSTM": ("input_gate", "forget_gate", "cell_gate", "output_gate"),
    "GRU": ("reset_gate", "update_gate", "new_gate"),
}
_TRANSFORMS = {"ih": "input_transform", "hh": "hidden_transform"}
_FEED_FORWARD = {"linear1": "pwff.linear_inner", "linear2": "pwff.linear_outer"}
# Parts of transformer layers; a second table where the norms come first, since Burn then begins
# with the last one.
_LAYERS = {
    "TransformerEncoderLayer": (
        {"self_attn": "mha", "norm1": "norm_1", "norm2": "norm_2"},
        {"self_attn": "mha", "norm1": "norm_2", "norm2": "norm_1"},
    ),
    "TransformerDecoderLayer": (
        {"multihead_attn": "cross_attn", "norm1": "norm_1", "norm2": "norm_2", "norm3": "norm_3"},
        {"multihead_attn": "cross_attn", "norm1": "norm_3", "norm2": "norm_1", "norm3": "norm_2"},
    ),
}


class BurnLayout:
    """Names and layouts of Rust's Burn: the default for `.bpk` files.

    Weights of Linear stand transposed; norms call weight and bias gamma and beta and count no
    batches; PReLU's weight is alpha; attention has query, key, value and output apart; RNN, LSTM
    and GRU of one layer have one transform per gate; layers of transformers have Burn's parts. What
    Burn lacks (stacked recurrent layers, the norm behind a transformer) keeps its name.

    A list of layers in Burn counts only those with parameters: pass `contiguous_indices` of the
    names as `rename=` where a `Sequential` here has others between.
    """

    def adapt(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces as Burn has them."""
        if len(pieces) != 1:
            return pieces
        (piece,) = pieces
        if piece.name == leaf.path:
            piece = piece._replace(name=_in_layers(leaf))
        kinds = set(leaf.kinds)
        head = piece.name.removesuffix(leaf.name)
        if kinds & _NORMS:
            if leaf.name == "num_batches_tracked":
                return ()
            return (
                piece._replace(
                    name=head + {"weight": "gamma", "bias": "beta"}.get(leaf.name, leaf.name)
                ),
            )
        if "PReLU" in kinds and leaf.name == "weight":
            return (piece._replace(name=f"{head}alpha"),)
        if "MultiheadAttention" in kinds:
            return self._attention(leaf, piece, head)
        for kind in leaf.kinds:
            if kind in _GATES:
                return self._gates(leaf, piece, head, _GATES[kind])
        if len(leaf.outer) > 1 and "MultiheadAttention" in leaf.outer[-2][1]:
            before, dot, attribute = head.removesuffix(".").rpartition(".")
            if attribute == "out_proj":
                piece = piece._replace(name=f"{before}{dot}output.{leaf.name}")
        if "Linear" in kinds and leaf.name == "weight":
            piece = piece._replace(transposed=not piece.transposed)
        return (piece,)

    def _attention(self, leaf: Leaf, piece: Piece, head: str) -> tuple[Piece, ...]:
        single = {"q_proj_weight": "query", "k_proj_weight": "key", "v_proj_weight": "value"}.get(
            leaf.name
        )
        if single:
            return (piece._replace(name=f"{head}{single}.weight", transposed=True),)
        if leaf.name not in ("in_proj_weight", "in_proj_bias"):
            return (piece,)
        matrix = leaf.name == "in_proj_weight"
        kind, rows = "weight" if matrix else "bias", leaf.shape[0] // 3
        return tuple(
            piece._replace(
                name=f"{head}{part}.{kind}", rows=(k * rows, (k + 1) * rows), transposed=matrix
            )
            for k, part in enumerate(("query", "key", "value"))
        )

    def _gates(
        self, leaf: Leaf, piece: Piece, head: str, gates: tuple[str, ...]
    ) -> tuple[Piece, ...]:
        base, reverse = leaf.name.removesuffix("_reverse"), leaf.name.endswith("_reverse")
        kind, _, rest = base.partition("_")
        which, _, layer = rest.partition("_")
        # Burn has no stacked layers and no projections: such weights keep PyTorch's names.
        stacked = any("_l1" in s or s.startswith("weight_hr") for s in leaf.siblings)
        if stacked or layer != "l0" or which not in _TRANSFORMS:
            return (piece,)
        both = any(s.endswith("_reverse") for s in leaf.siblings)
        side = "" if not both else "reverse." if reverse else "forward."
        rows = leaf.shape[0] // len(gates)
        return tuple(
            piece._replace(
                name=f"{head}{side}{gate}.{_TRANSFORMS[which]}.{kind}",
                rows=(k * rows, (k + 1) * rows) if len(gates) > 1 else None,
                transposed=kind == "weight",
            )
            for k, gate in enumerate(gates)
        )


def _in_layers(leaf: Leaf) -> str:
    """Return the path of a tensor with the parts of transformer layers under Burn's names."""
    path = leaf.path
    for (place, kinds), module in zip(leaf.outer[::-1], leaf.modules[::-1], strict=True):
        for kind, tables in _LAYERS.items():
            if kind in kinds:
                head = f"{place}." if place else ""
                part, dot, rest = path.removeprefix(head).partition(".")
                table = tables[bool(getattr(module, "norm_first", False))] | _FEED_FORWARD
                path = f"{head}{table.get(part, part)}{dot}{rest}"
    return path


class HalfPrecision:
    """Saves floats in 16 bits; loading casts back to the model's dtype by itself.

    Args:
        dtype: `float16` or `bfloat16`.
        full: class names of modules whose tensors keep their precision.

    Example:
        >>> HalfPrecision("bfloat16").dtype
        'bfloat16'
    """

    def __init__(
        self,
        dtype: str | DType = "float16",
        full: tuple[str, ...] = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
    ) -> None:
        self.dtype = dtype if isinstance(dtype, str) else dtype.name
        self.full = frozenset(full)

    def adapt(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces with the dtype set."""
        if self.full & set(leaf.kinds) or not leaf.value.dtype.is_float:
            return pieces
        return tuple(p._replace(dtype=self.dtype) for p in pieces)


class Chain:
    """Several adapters, each on what the one before made.

    Args:
        adapters: in order.

    Example:
        >>> len(Chain(BurnLayout(), HalfPrecision()).adapters)
        2
    """

    def __init__(self, *adapters: Adapter) -> None:
        self.adapters = adapters

    def adapt(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return what the last adapter makes."""
        for adapter in self.adapters:
            pieces = adapter.adapt(leaf, pieces)
        return pieces


_LAYOUTS: dict[str, Adapter] = {"torch": TorchLayout(), "burn": BurnLayout()}


def adapter_for(layout: str, adapter: Adapter | None) -> Adapter:
    """Return the adapter that was passed, or the one for a format's layout.

    `HalfPrecision` alone says nothing of names, so the layout's adapter goes before it.
    """
    own = _LAYOUTS[layout]
    if adapter is None:
        return own
    return Chain(own, adapter) if isinstance(adapter, HalfPrecision) else adapter
