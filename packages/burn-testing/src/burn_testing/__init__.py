"""Samples of every operation, a conformance suite, gradient checks, tolerances, a null backend."""

from burn_testing.tolerance import (
    Tolerance as Tolerance,
    case_tolerance as case_tolerance,
    difference as difference,
    tolerance as tolerance,
)
