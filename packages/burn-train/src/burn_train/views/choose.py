"""Which view fits: a dashboard or a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from burn_std import BackendLoadError, PluginGroup
from burn_train.observer import LOG

API_VERSION = 1
VIEWS = PluginGroup("burn.train_views", API_VERSION)


def fitting_view(environment: Mapping[str, str], is_terminal: bool, notebook: bool) -> str:
    """Return the name of the view that fits.

    Args:
        environment: variables: `TERM`, `CI` and `BURN_VIEW`, which overrides.
        is_terminal: standard output and input are a terminal.
        notebook: the code runs in a notebook.

    Example:
        >>> fitting_view({"TERM": "xterm"}, is_terminal=True, notebook=False)
        'dashboard'
        >>> fitting_view({"TERM": "dumb"}, is_terminal=True, notebook=False)
        'plain'
    """
    if environment.get("BURN_VIEW"):
        return environment["BURN_VIEW"]
    if notebook:
        return "progress"
    if not is_terminal or environment.get("CI") or environment.get("TERM", "") in ("", "dumb"):
        return "plain"
    if os.name != "posix":
        return "progress"
    return "dashboard"


def choose_view(name: str | None = None) -> Any:
    """Return a view: the named one, else the one that fits where the output goes.

    Args:
        name: of an installed view, or None.

    Raises:
        BackendLoadError: there is no such view, or it does not load.
    """
    if name is not None:
        return VIEWS.load(name)()
    notebook = "ipykernel" in sys.modules
    chosen = fitting_view(os.environ, _is_terminal(), notebook)
    if chosen != "dashboard":
        return VIEWS.load(chosen)()
    try:
        return VIEWS.load(chosen)()
    except BackendLoadError as error:
        # Nobody asked for it by name, so a lesser view serves; the reason is no secret.
        LOG.info("no dashboard: %s", error)
        return VIEWS.load("progress")()


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty() and sys.stdin.isatty() and _in_front()
    except (AttributeError, ValueError):  # closed, or replaced by something without it
        return False


def _in_front() -> bool:
    """Return False behind a shell's prompt: there whoever touches the terminal is stopped."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (AttributeError, OSError):  # a system, or a terminal, without jobs
        return True
