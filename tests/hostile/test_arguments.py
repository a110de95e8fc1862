"""Every public call of the case files with arguments that make no sense.

One case per function and form: each argument in turn is replaced by each of the values below. The
answer is a value or a typed error near the caller's line, never an exception of what lies inside.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import TensorBase
from burn_std import BurnError, DTypeError, ExecutionError
from burn_testing.cases.read import Case, Given, load, names
from burn_testing.cases.run import find, tensor
from burn_testing.devices import another
from tests.conftest import CASES
from tests.hostile.random_arguments import OF_VALUES

FOLDER = CASES / "ops"


class Odd:
    """Nothing that a tensor knows."""


def values(device: Any) -> Iterator[Any]:
    """Yield what no function can want, and tensors of shapes and dtypes that few want."""
    yield from (None, "abc", [1.0, 2.0], [], np.ones(3, np.float32), np.int64(1), {}, Odd(), float)
    yield from (
        float("nan"),
        float("inf"),
        -5,
        2**70,
        1j,
        (1, -2, 3),
        (None,),
        burn.float32,
        device,
    )
    yield burn.tensor(1.5, device=device)
    yield burn.tensor(1, device=device)
    yield burn.zeros(2, 0, 3, device=device)
    yield burn.ones(1, 2, 1, 2, 1, device=device)
    yield burn.tensor([True, False], device=device)
    yield burn.tensor([-1, -100], dtype=burn.int8, device=device)
    yield burn.ones(2, 3, device=another(device))
    yield burn.ones(2, 3, device=device.autodiff()).require_grad()
    yield [burn.ones(2, device=device), None]


def made(value: Any, device: Any) -> Any:
    """Return an argument of a case."""
    if isinstance(value, Given):
        return tensor(device.context, value)
    return type(value)(made(v, device) for v in value) if type(value) in (list, tuple) else value


def complaint(fn: Any, args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Return what is wrong with how a call fails, or None."""
    try:
        out = fn(*args, **kwargs)
        for t in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(t, TensorBase) and not t.dtype.is_quantized:
                t.numpy()
    except BurnError as error:
        known = any(words in str(error) for words in OF_VALUES)
        if isinstance(error, ExecutionError) and not known:
            return f"{type(error).__name__}: {error}"
        frames = traceback.extract_tb(error.__traceback__)[1:]
        return f"{len(frames)} frames: {error}" if len(frames) > 2 else None
    except Exception as error:  # noqa: BLE001 - this is what must not happen
        plain = len(traceback.extract_tb(error.__traceback__)) == 1  # Python's own: called wrongly
        return None if plain else f"{type(error).__name__}: {error}"
    return None


def forms(name: str) -> list[Case]:
    """Return one case per number of arguments and names of keywords."""
    found: dict[Any, Case] = {}
    for case in load(FOLDER, name):
        found.setdefault((case.fn, len(case.args), *sorted(case.kwargs)), case)
    return list(found.values())[:3]


# Among the wrong arguments are shapes that a loss broadcasts, which is answered.
@pytest.mark.filterwarnings("ignore::burn.BroadcastWarning")
# The same program with numbers of ever other classes has no replay.
@pytest.mark.filterwarnings("ignore::burn.ReplayWarning")
@pytest.mark.parametrize("name", names(FOLDER))
def test_wrong_arguments_get_typed_errors(name: str, device: Any) -> None:
    wrong = []
    for case in forms(name):
        fn = find(case.fn)
        method = case.fn.startswith("Tensor.")
        for place in [*range(len(case.args)), *case.kwargs]:
            for value in values(device):
                if method and place == 0 and not isinstance(value, TensorBase):
                    continue
                args = [made(a, device) for a in case.args]
                kwargs = {k: made(v, device) for k, v in case.kwargs.items()}
                (args if isinstance(place, int) else kwargs)[place] = value  # type: ignore[index, call-overload]
                found = complaint(fn, args, kwargs)
                if found:
                    shown = value if isinstance(value, (int, float, str)) else type(value).__name__
                    wrong.append(f"{case.fn}({place}={shown}): {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.var(keepdim="yes"),
        lambda x: x.prod(dtype="float32"),
        lambda x: x.index_add(0, burn.tensor([0], device=x.device), x[:1], alpha="2"),
        lambda x: x.index_put((burn.tensor([0], device=x.device),), x[0], accumulate=None),
    ],
)
def test_attributes_are_checked_at_the_call(call: Any, device: Any) -> None:
    x = burn.ones(2, 3, device=device)
    with pytest.raises(DTypeError):
        call(x)


def test_errors_of_a_flush_end_at_the_line_that_reads() -> None:
    x = burn.ones(3, device="fusion-flex")
    late = x.index_select(0, burn.tensor([7], device="fusion-flex"))
    for read in (late.numpy, late.tolist, late.item):
        with pytest.raises(BurnError) as caught:
            read()
        assert len(traceback.extract_tb(caught.value.__traceback__)) <= 2
