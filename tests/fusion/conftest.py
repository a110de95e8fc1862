"""Ctrl-C reaches these tests also where a shell started them in the background."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    # An interrupt that arrives while the collector tells a Python function is lost. Hypothesis has
    # such a function, which took one in twelve of the signals sent into a loop of operations.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, old)
