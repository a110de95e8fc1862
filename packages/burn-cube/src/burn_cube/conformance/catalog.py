"""All cases in one list."""

from __future__ import annotations

from burn_cube.conformance.arithmetic import arithmetic_cases
from burn_cube.conformance.case import Case
from burn_cube.conformance.control import control_cases
from burn_cube.conformance.together import together_cases


def cases() -> list[Case]:
    """Return every case, in a fixed order.

    Example:
        >>> len(cases()) > 150
        True
    """
    return [*control_cases(), *together_cases(), *arithmetic_cases()]
