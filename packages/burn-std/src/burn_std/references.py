"""How many references this Python counts of an object in plain places.

Whoever asks whether he alone holds an object compares a count with what it is then, and that
differs: from CPython 3.14 on a local that is an argument is lent, not counted once more.
"""

from __future__ import annotations

from sys import getrefcount


def _of_a_local() -> int:
    made = object()
    return getrefcount(made)


# What `getrefcount(name)` gives for an object that this one local, or variable of a loop, holds:
# the local, and on some Pythons the argument.
OF_A_LOCAL = _of_a_local()
