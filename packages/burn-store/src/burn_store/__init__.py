"""Weights on disk: one front over formats that are found by entry point."""

from burn_store.adapters import (
    Adapter as Adapter,
    BurnLayout as BurnLayout,
    Chain as Chain,
    HalfPrecision as HalfPrecision,
    Piece as Piece,
    TorchLayout as TorchLayout,
)
from burn_store.elements import Spec as Spec
from burn_store.format import (
    API_VERSION as API_VERSION,
    FORMATS as FORMATS,
    Format as Format,
    Reading as Reading,
    Source as Source,
)
from burn_store.leaves import Leaf as Leaf
from burn_store.report import LoadReport as LoadReport
from burn_store.selection import contiguous_indices as contiguous_indices
from burn_store.store import (
    load as load,
    open as open,
    save as save,
    save_tensors as save_tensors,
    to_bytes as to_bytes,
)
from burn_store.tensor_file import TensorFile as TensorFile

__all__ = [
    "API_VERSION",
    "FORMATS",
    "Adapter",
    "BurnLayout",
    "Chain",
    "Format",
    "HalfPrecision",
    "Leaf",
    "LoadReport",
    "Piece",
    "Reading",
    "Source",
    "Spec",
    "TensorFile",
    "TorchLayout",
    "contiguous_indices",
    "load",
    "open",
    "save",
    "save_tensors",
    "to_bytes",
]
