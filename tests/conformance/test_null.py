"""The null backend passes the whole suite: shapes, dtypes and refusals come from the catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from burn_dispatch import device
from burn_ir import CATALOG
from burn_testing.conformance import checks
from burn_testing.conformance.reference import reference
from burn_testing.samples import ERRORS, SAMPLES

SIZED = sorted(name for name in SAMPLES if CATALOG[name].klass != "dynamic")


@pytest.fixture(scope="module")
def flex() -> Any:
    return reference("null")


@pytest.mark.parametrize("name", SIZED)
def test_null_has_the_shapes_and_dtypes_of_flex(name: str, flex: Any) -> None:
    wrong = checks.same_values(device("null"), flex, name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_null_refuses_what_flex_refuses(name: str) -> None:
    wrong = checks.refusals(device("null"), name)
    assert not wrong, "\n".join(wrong)
