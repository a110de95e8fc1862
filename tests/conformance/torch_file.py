"""Reads the state dicts of the module cases: the zip container of `torch.save`, nothing else.

A small stand-alone reader, so that the module cases test the modules alone. It allows exactly the
three constructors that a state dict needs and never imports what a file names.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

_DTYPES = {
    "FloatStorage": "f4",
    "DoubleStorage": "f8",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "BoolStorage": "?",
}


def read_state_dict(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a state dict by key."""
    with zipfile.ZipFile(path) as file:
        folder = next(n for n in file.namelist() if n.endswith("data.pkl")).rpartition("/")[0]

        def rebuild(storage: Any, offset: int, shape: Any, strides: Any, *rest: Any) -> Any:
            size = storage.itemsize
            view = np.lib.stride_tricks.as_strided(
                storage[offset:], shape, [s * size for s in strides], writeable=False
            )
            return np.array(view)

        class Reader(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
                    return rebuild
                if (module, name) == ("collections", "OrderedDict"):
                    return OrderedDict
                if module == "torch" and name in _DTYPES:
                    return name
                raise pickle.UnpicklingError(f"{module}.{name} is not part of a state dict")

            def persistent_load(self, key: Any) -> Any:
                _, kind, name, _, count = key
                raw = file.read(f"{folder}/data/{name}")
                return np.frombuffer(raw, _DTYPES[kind], count)

        with file.open(f"{folder}/data.pkl") as data:
            return dict(Reader(data).load())
