from __future__ import annotations

import pickle

import pytest

import burn_std
from burn_std import BurnError, ShapeError

ERRORS = [e for e in vars(burn_std).values() if isinstance(e, type) and issubclass(e, BurnError)]


def test_message_is_made_from_the_fields() -> None:
    error = ShapeError("matmul", "inner sizes must match", got="3 and 4", remedy="Transpose?")
    assert str(error) == "matmul: inner sizes must match; got 3 and 4. Transpose?"
    assert (error.op, error.rule, error.got, error.remedy) == (
        "matmul", "inner sizes must match", "3 and 4", "Transpose?",
    )  # fmt: skip
    assert str(ShapeError("f", "rule")) == "f: rule"


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_every_error_travels_between_processes(error: type[BurnError]) -> None:
    made = pickle.loads(pickle.dumps(error("op", "rule", got=3, remedy="Do.")))
    assert type(made) is error
    assert str(made) == "op: rule; got 3. Do."


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ShapeError", ValueError), ("DTypeError", TypeError), ("ArgumentError", ValueError),
        ("IndexRangeError", IndexError), ("DeviceLostError", RuntimeError),
        ("UnsupportedOpError", RuntimeError), ("GraphError", ValueError),
        ("AutodiffError", RuntimeError), ("ConfigError", ValueError),
    ],
)  # fmt: skip
def test_errors_are_what_python_users_catch(name: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(burn_std, name), builtin)
