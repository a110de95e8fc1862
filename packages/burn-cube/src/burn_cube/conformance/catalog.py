"""All cases in one list."""

from __future__ import annotations

from burn_cube.conformance.arithmetic import arithmetic_cases
from burn_cube.conformance.case import Case
from burn_cube.conformance.composed import COMPOSED
from burn_cube.conformance.control import control_cases
from burn_cube.conformance.cooperation import COOPERATION
from burn_cube.conformance.edges import EDGES
from burn_cube.conformance.programs import PROGRAMS
from burn_cube.conformance.together import together_cases


def cases() -> list[Case]:
    """Return every case, in a fixed order.

    Example:
        >>> len(cases()) > 150
        True
    """
    collections = (PROGRAMS, COMPOSED, COOPERATION, EDGES)
    stood_beside = [case for collection in collections for case in collection.cases]
    return [*control_cases(), *together_cases(), *stood_beside, *arithmetic_cases()]
