"""Softmax and norms of rows that are one vector: a NaN at any place spoils its row and no other."""

import numpy as np
import pytest

import burn

F = burn.functional


@pytest.mark.parametrize("length", [10, 16, 40, 200])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "cross_entropy"])
def test_a_nan_spoils_its_row_alone(name, length):
    x = np.random.default_rng(0).standard_normal((length + 1, length)).astype(np.float32)
    x[np.arange(length), np.arange(length)] = np.nan
    given = burn.tensor(x, device=burn.device("eager-cpu"))
    if name == "layer_norm":
        made = F.layer_norm(given, (length,)).numpy()
    elif name == "cross_entropy":
        target = burn.tensor(np.zeros(length + 1, np.int64), device=given.device)
        made = F.cross_entropy(given, target, reduction="none").numpy()
    else:
        made = getattr(F, name)(given, 1).numpy()
    assert np.isnan(made[:length]).all()
    assert np.isfinite(made[length]).all()


def test_what_is_infinite_in_a_row_of_softmax():
    x = np.zeros((3, 16), np.float32)
    x[0, 5], x[1], x[2, 7] = -np.inf, -np.inf, np.inf
    made = F.softmax(burn.tensor(x, device=burn.device("eager-cpu")), 1).numpy()
    assert made[0, 5] == 0 and np.allclose(made[0].sum(), 1)
    assert np.isnan(made[1]).all() and np.isnan(made[2, 7])
