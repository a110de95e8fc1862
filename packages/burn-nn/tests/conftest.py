from __future__ import annotations

import pytest

from burn_dispatch import Device


@pytest.fixture
def device() -> Device:
    return Device.default()


@pytest.fixture
def tracking() -> Device:
    return Device.default().autodiff()
