"""Every conformance case in the interpreter, and what the interpreter finds in wrong kernels."""

import numpy as np
import pytest

from burn_cube.conformance import cases, check


@pytest.mark.parametrize("case", cases(), ids=repr)
def test_case(case):
    check(case)


def test_names_are_unique():
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
    assert np.all([name.isidentifier() for name in names])
