"""One test per operation and property; run with `pytest --pyargs burn_testing.conformance`."""

from __future__ import annotations

from typing import Any

import pytest

from burn_ir import CATALOG
from burn_testing.conformance import checks
from burn_testing.samples import ERRORS, SAMPLES

NAMES = sorted(e.name for e in CATALOG if e.name in SAMPLES)
every = pytest.mark.parametrize("name", NAMES)


@every
def test_values_are_those_of_the_reference(name: str, device: Any, reference: Any) -> None:
    wrong = checks.same_values(device, reference, name)
    assert not wrong, "\n".join(wrong)


@every
def test_layouts_change_nothing(name: str, device: Any) -> None:
    wrong = checks.same_layouts(device, name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_bad_input_is_refused(name: str, device: Any) -> None:
    wrong = checks.refusals(device, name)
    assert not wrong, "\n".join(wrong)


@every
def test_two_devices_are_refused(name: str, device: Any, other: Any) -> None:
    wrong = checks.mixed_devices(device, other, name)
    assert not wrong, "\n".join(wrong)


def test_every_operation_has_samples() -> None:
    # Third parties bring samples of their own with the operations they register.
    ours = [e.name for e in CATALOG if "::" not in e.name]
    missing = [name for name in ours if name not in SAMPLES or name not in ERRORS]
    assert not missing
