"""Weights on disk: one front over formats that are found by entry point."""

from burn_store.format import (
    API_VERSION as API_VERSION,
    FORMATS as FORMATS,
    Format as Format,
    Reading as Reading,
)
from burn_store.report import LoadReport as LoadReport
from burn_store.store import (
    TensorFile as TensorFile,
    load as load,
    open as open,
    save as save,
    save_tensors as save_tensors,
)

__all__ = [
    "API_VERSION",
    "FORMATS",
    "Format",
    "LoadReport",
    "Reading",
    "TensorFile",
    "load",
    "open",
    "save",
    "save_tensors",
]
