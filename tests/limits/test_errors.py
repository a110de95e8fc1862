"""An error comes at the call, is typed, says the rule and the values, and stands near the user."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn

F = burn.functional


def bad_calls(device: Any) -> list[tuple[str, Callable[[], Any], type[Exception]]]:
    x, y = burn.ones(2, 3, device=device), burn.ones(4, 5, device=device)
    whole = burn.ones(2, dtype=burn.int64, device=device)
    return [
        ("add", lambda: x + y, burn.ShapeError),
        ("matmul", lambda: x @ y, burn.ShapeError),
        ("reshape", lambda: x.reshape(4), burn.ShapeError),
        ("sum", lambda: x.sum(5), IndexError),
        ("mean", lambda: whole.mean(), burn.DTypeError),
        ("cat", lambda: burn.cat([x, y], 0), burn.ShapeError),
        ("conv1d", lambda: F.conv1d(x, y), burn.ShapeError),
        ("gather", lambda: x.gather(0, x), burn.DTypeError),
        ("exp", lambda: x.exp() + "1", TypeError),
        ("cross_entropy", lambda: F.cross_entropy(x, whole.reshape(1, 2)), burn.ShapeError),
        ("layer_norm", lambda: F.layer_norm(x, (4,)), burn.ShapeError),
        ("index", lambda: x[7], IndexError),
        ("where", lambda: burn.where(x, x, x), burn.DTypeError),
        ("to", lambda: x.backward(), burn.AutodiffError),
    ]


NAMES = [name for name, _, _ in bad_calls(burn.device("flex"))]


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_typed_and_near(name: str, device: Any) -> None:
    _, call, kind = next(c for c in bad_calls(device) if c[0] == name)
    with pytest.raises(kind) as caught:
        call()
    frames = [
        f
        for f in traceback.extract_tb(caught.value.__traceback__)
        if "tests/limits" not in f.filename
    ]
    assert len(frames) <= 3, frames
    if isinstance(caught.value, burn.BurnError):
        assert str(caught.value).startswith(f"{caught.value.op}: {caught.value.rule}")


def test_messages_name_rule_values_and_remedy(device: Any) -> None:
    x, y = burn.ones(2, 3, device=device), burn.ones(4, 5, device=device)
    with pytest.raises(burn.ShapeError) as caught:
        x @ y
    text = str(caught.value)
    assert text.startswith("matmul: inner sizes must match; got ")
    assert "[2, 3]" in text
    assert "[4, 5]" in text
    assert caught.value.op == "matmul"
    assert caught.value.remedy


def test_kernels_show_no_warnings_and_keep_the_users_error_state(device: Any) -> None:
    with np.errstate(all="raise"):
        x = burn.tensor([0.0, -1.0, 1e38], device=device)
        found = [(x / 0).tolist(), x.log().tolist(), (x * x).tolist(), x.sqrt().tolist()]
        assert np.geterr()["divide"] == "raise"
    assert len(found) == 4


def test_errors_travel_between_processes() -> None:
    import pickle

    error = burn.ShapeError(
        "add", "shapes must broadcast", got="[2] and [3]", remedy="Reshape one."
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.op, again.rule, again.got, again.remedy) == (
        error.op,
        error.rule,
        error.got,
        error.remedy,
    )
