"""The conformance suite of burn-testing, as an outsider would run it, on the backend under test."""

from __future__ import annotations

from typing import Any

import pytest

from burn_ir import CATALOG
from burn_testing.conformance import checks
from burn_testing.conformance.reference import reference as find_reference
from burn_testing.samples import ERRORS, SAMPLES

every = pytest.mark.parametrize("name", sorted(SAMPLES))


@pytest.fixture(scope="module")
def reference(backend: str) -> Any:
    return find_reference(backend)


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


def test_every_operation_has_samples_and_error_samples() -> None:
    names = {e.name for e in CATALOG if "::" not in e.name}
    assert names <= set(SAMPLES)
    assert names <= set(ERRORS)
