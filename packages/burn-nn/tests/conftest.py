from __future__ import annotations

import pytest

from burn_dispatch import Device


@pytest.fixture
def device() -> Device:
    return Device.flex()


@pytest.fixture
def tracking() -> Device:
    return Device.flex().autodiff()
