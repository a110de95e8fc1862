from typing import Any

import numpy as np
import pytest

from burn_dispatch import device
from burn_testing.layouts import LAYOUTS, in_layout, strided

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def read(x: Any) -> Any:
    return x.b.to_numpy(x)


@pytest.mark.parametrize(
    "strides", [(12, 4, 1), (1, 2, 6), (24, 8, 2), (100, 4, 1), (12, 1, 3), (48, 12, 2)]
)
def test_strides_are_those_asked_for(strides: tuple[int, ...]) -> None:
    x = read(strided(device("flex").context, VALUES, strides))
    np.testing.assert_array_equal(x, VALUES)
    assert tuple(s // 4 for s in x.strides) == strides


def test_stride_0_is_an_expansion() -> None:
    values = np.broadcast_to(np.arange(3, dtype=np.float32)[:, None], (3, 4))
    x = read(strided(device("flex").context, values, (1, 0)))
    np.testing.assert_array_equal(x, values)
    assert x.strides[1] == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(2, 3), (3,), (), (0, 2), (2, 0)])
def test_named_layouts_hold_the_values(layout: str, shape: tuple[int, ...]) -> None:
    values = np.full(shape, 2.5, np.float32)
    x = in_layout(device("flex").context, values, layout)
    if x is not None:
        np.testing.assert_array_equal(read(x), values)
