"""What the name of a device stands for: a backend and the decorators in front of it.

A backend may ask to stand behind decorators by default (`behind` of its plugin): its plain name
then means the decorated device, `eager-` before the name the bare one. Names that mean the same
device have one canonical form, so that a device is one object whatever it was called.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_std import DeviceError, PluginGroup

# No decorator: it says that a backend stands bare, also where it would be decorated.
EAGER = "eager"


class Stack(NamedTuple):
    """The parts of a device.

    Attributes:
        name: the canonical name, `cpu` also for `fusion-cpu`.
        base: the backend's name.
        wrappers: the decorators, outermost first.
        chain: how the device prints, `fusion<flex>`, `eager<cpu>`.
    """

    name: str
    base: str
    wrappers: tuple[str, ...]
    chain: str


def stack_of(name: str, backends: PluginGroup, decorators: PluginGroup) -> Stack:
    """Return what a name without an index stands for; imports the backend's plugin.

    Raises:
        BackendLoadError: no backend of that name is installed, or it does not load.
        DeviceError: a decorator stands twice in the name, or `eager` in a wrong place.
    """
    said, base = [], name
    while not backends.installed(base) and "-" in base:
        wrapper, _, base = base.partition("-")
        said.append(wrapper)
    plugin: Any = backends.load(base)
    wanted: tuple[str, ...] = getattr(plugin, "behind", ())
    usual = tuple(w for w in wanted if decorators.installed(w))
    if len(set(said)) < len(said):
        raise DeviceError(name, "every decorator stands once in a name", got=repr(name))
    if EAGER in said[:-1]:
        raise DeviceError(
            name, f"{EAGER} stands directly before the backend, which it leaves bare",
            got=repr(name), remedy=f"Write {EAGER}-{base}, or {base} for the usual device.",
        )  # fmt: skip
    bare = EAGER in said
    wrappers = tuple(said[:-1] if bare else said)
    if not bare and not any(w in usual for w in wrappers):
        wrappers += usual
    # What is usual is not said, and where it is missing that is said.
    if usual and wrappers[-len(usual) :] == usual:
        shown = wrappers[: -len(usual)]
    elif wanted and not any(w in wanted for w in wrappers):
        shown = (*wrappers, EAGER)
    else:
        shown = wrappers
    chain = base
    for wrapper in reversed(shown):
        chain = f"{wrapper}<{chain}>"
    return Stack("-".join([*shown, base]), base, wrappers, chain)
