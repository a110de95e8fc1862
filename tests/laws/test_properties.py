"""`hasattr` answers: a property that an object lacks raises what Python asks for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim


def things() -> Iterator[tuple[str, Any]]:
    tracked = burn.Device.default().autodiff()
    for rank in range(4):
        yield f"rank {rank}", burn.ones(*(2,) * rank)
    yield "nothing", burn.ones(0)
    yield "bools", burn.ones(2, dtype=burn.bool_)
    yield "result", burn.ones(2, device=tracked).require_grad() * 2
    yield "quantised", burn.ones(4, 4).quantize(burn.quantized(8))
    yield "lazy", nn.Parameter.lazy()
    yield "parameter", nn.Parameter(burn.ones(2))
    yield "twin", nn.Linear(2, 2).valid().weight
    yield "buffer", nn.Buffer(burn.ones(2))
    yield "device", burn.Device.default()
    yield "autodiff device", tracked
    yield "dtype", burn.float32
    yield "module", nn.Linear(2, 2)
    yield "lazy module", nn.LazyLinear(2)
    yield "valid", nn.Dropout().valid()
    yield "optimizer", optim.Adam(lr=0.1)
    yield "schedule", optim.lr_scheduler.StepLR(0.1, step_size=2)
    yield "scaler", optim.GradScaler()
    yield "average", optim.EMA(nn.Linear(1, 1))
    yield "loader", burn.dataset.DataLoader(burn.dataset.ArrayDataset(np.ones(2)))
    yield "capture", burn.capture(lambda x: x, state=())
    yield "metric", burn.train.Accuracy()


def test_every_property_can_be_asked_for() -> None:
    for name, thing in things():
        asked = 0
        for key in {k for cls in type(thing).__mro__ for k in vars(cls)}:
            if not inspect.isfunction(inspect.getattr_static(thing, key)):
                hasattr(thing, key)  # raises what is no AttributeError
                asked += 1
        assert asked, name
        assert not hasattr(thing, "no_such_thing"), name


def test_what_a_shape_lacks_says_so() -> None:
    x = burn.ones(2)
    assert not hasattr(x, "mT")
    assert getattr(x, "mT", None) is None
    with pytest.raises(burn.ShapeError, match="at least two dims"):
        _ = x.mT
    lazy = nn.Parameter.lazy()
    assert not hasattr(lazy, "shape")
    with pytest.raises(AttributeError, match="Call the module once"):
        _ = lazy.T
