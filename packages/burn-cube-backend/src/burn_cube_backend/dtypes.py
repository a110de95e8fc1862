"""What numpy calls the dtypes of a device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from burn_std import DType, dtypes as d

_HOST = {t: np.dtype(ml_dtypes.bfloat16 if t is d.bfloat16 else t.name) for t in d.PLAIN}


def host_dtype(dtype: DType) -> np.dtype[Any]:
    """Return numpy's dtype of a plain DType.

    Example:
        >>> host_dtype(d.bfloat16).name, host_dtype(d.bool_).name
        ('bfloat16', 'bool')
    """
    return _HOST[dtype]
