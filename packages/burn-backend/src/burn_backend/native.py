"""Which functions are native: `BURN_NATIVE` is `on` (the default), `off` or `always`.

`on` compiles the functions of operations that come again and again, where the backend can; `always`
compiles each as it is made, for tests. They do the same as their text.
"""

from __future__ import annotations

import os

from burn_std import ArgumentError

MODES = ("on", "off", "always")


def native_mode() -> str:
    """Return what the environment asks for.

    Raises:
        ArgumentError: it asks for something else.
    """
    found = os.environ.get("BURN_NATIVE", "on")
    if found not in MODES:
        raise ArgumentError("BURN_NATIVE", f"is one of {', '.join(MODES)}", got=repr(found))
    return found
