"""The one loader of entry points; every plugin group goes through it.

Metadata is read on first use, never at import; only the plugin asked for is imported; a failure
is remembered, so that the second use gives the same error at once.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from burn_std.errors import BackendLoadError

# Reading metadata pulls in email, zipfile and more: 20 ms that no import of ours may cost.
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# What brings the plugins of this project; named in the remedy when one is not installed.
KNOWN = {
    "burn.backends": {
        "flex": "burn-flex", "cpu": "burn-cube-backend", "cuda": "burn-cube-backend",
        "opencl": "burn-cube-backend", "remote": "burn-remote", "null": "burn-testing",
        "capture": "burn-fusion",
    },
    "burn.decorators": {
        "autodiff": "burn-autodiff", "fusion": "burn-fusion", "remote": "burn-remote",
    },
    "burn.cube_runtimes": {"cpu": "burn-cube", "cuda": "burn-cube", "opencl": "burn-cube"},
    "burn.store_formats": {"safetensors": "burn-store"},
    "burn.train_views": {"progress": "burn-train", "plain": "burn-train"},
}  # fmt: skip


def load_object(path: str) -> Any:
    """Import what `module:attribute` names.

    Example:
        >>> load_object("math:pi") > 3
        True
    """
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the remedy "Did you mean ...?" for a mistyped name, or None when nothing is near.

    Example:
        >>> nearest("sofmax", ["softmax", "relu"])
        "Did you mean 'softmax'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f"Did you mean {near[0]!r}?" if near else None


def missing_name(
    module: str, name: str, known: Iterable[str], otherwise: Mapping[str, str]
) -> AttributeError:
    """Return the error of a module for a name that it lacks, with what to write instead.

    Args:
        module: the module's name.
        name: what was asked for.
        known: names that it has; a near one is proposed.
        otherwise: remedies for names that another library has there.

    Example:
        >>> str(missing_name("nn", "Lienar", ["Linear"], {}))
        "nn: no such name; got 'Lienar'. Did you mean nn.Linear?"
    """
    from difflib import get_close_matches

    hint = otherwise.get(name)
    if hint is None:
        near = get_close_matches(name, list(known), 1)
        hint = f"Did you mean {module}.{near[0]}?" if near else ""
    return AttributeError(f"{module}: no such name; got {name!r}. {hint}".rstrip())


class PluginInfo:
    """What is known of one entry point without importing it.

    Attributes:
        name: entry name, what the user types.
        distribution: the distribution that offers it.
        version: version of that distribution.
        value: `module:attribute`.
        status: `not loaded`, `loaded` or `failed: <reason>`.
    """

    __slots__ = ("distribution", "name", "status", "value", "version")

    def __init__(
        self,
        name: str,
        distribution: str,
        version: str,
        value: str,
        status: str = "not loaded",
    ) -> None:
        self.name = name
        self.distribution = distribution
        self.version = version
        self.value = value
        self.status = status

    def __repr__(self) -> str:
        where = f"{self.distribution} {self.version}, {self.value}"
        return f"PluginInfo({self.name!r}, {where}, {self.status})"


class PluginGroup:
    """The plugins of one entry-point group."""

    def __init__(self, group: str, api_version: int | None = None) -> None:
        self.group = group
        self.api_version = api_version
        self._lock = threading.RLock()
        self._entries: dict[str, list[EntryPoint]] | None = None
        self._loaded: dict[str, Any] = {}
        self._failed: dict[str, BackendLoadError] = {}

    def refresh(self) -> None:
        """Forget what was read, for notebooks in which something was just installed."""
        with self._lock:
            self._entries = None
            self._failed.clear()

    def _found(self) -> dict[str, list[EntryPoint]]:
        with self._lock:
            if self._entries is None:
                from importlib.metadata import entry_points

                found: dict[str, list[EntryPoint]] = {}
                seen: set[tuple[str, str, str, str]] = set()
                for entry in entry_points(group=self.group):
                    # The same distribution may stand on the path twice.
                    facts = (entry.name, entry.value, *_origin(entry))
                    if facts not in seen:
                        seen.add(facts)
                        found.setdefault(entry.name, []).append(entry)
                self._entries = found
            return self._entries

    def names(self) -> list[str]:
        """Return the names that are installed, sorted."""
        return sorted(self._found())

    def installed(self, name: str) -> bool:
        """Return whether a distribution offers this name."""
        return name.partition(":")[2] in self._found() or name in self._found()

    def infos(self) -> list[PluginInfo]:
        """Return one line of facts per entry point; imports nothing."""
        out = []
        for name, entries in sorted(self._found().items()):
            for e in entries:
                dist, version = _origin(e)
                info = PluginInfo(name, dist, version, e.value)
                if name in self._failed:
                    error = self._failed[name]
                    info.status = f"failed: {error.rule}; got {error.got}"
                elif name in self._loaded:
                    info.status = "loaded"
                out.append(info)
        return out

    def load(self, name: str) -> Any:
        """Import the plugin of that name, once, and return its object.

        Args:
            name: an entry name, or `distribution:name` where two distributions offer it.

        Raises:
            BackendLoadError: not installed, offered twice, broken at import, or made for
                another version of the contract; the cause is chained.
        """
        with self._lock:
            if name in self._loaded:
                return self._loaded[name]
            if name in self._failed:
                raise self._failed[name]
            try:
                plugin = self._load(name)
            except BackendLoadError as error:
                if name in self._found():
                    self._failed[name] = error
                raise
            self._loaded[name] = plugin
            return plugin

    def _load(self, name: str) -> Any:
        wanted, _, short = name.rpartition(":")
        entries = self._found().get(short, [])
        if wanted:
            entries = [e for e in entries if _origin(e)[0] == wanted]
        if not entries:
            raise self._missing(short)
        if len(entries) > 1:
            both = " and ".join(f"{_origin(e)[0]} ({e.value})" for e in entries)
            raise BackendLoadError(
                short, f"two distributions offer {short!r} in {self.group}", got=both,
                remedy=f"Name one as {_origin(entries[0])[0]}:{short}, or uninstall the other.",
            )  # fmt: skip
        entry = entries[0]
        dist, version = _origin(entry)
        try:
            plugin = entry.load()
        except Exception as cause:
            raise BackendLoadError(
                short, f"{dist} {version} ({entry.value}) does not import",
                got=f"{type(cause).__name__}: {cause}",
                remedy=f"Reinstall {dist}, or see `python -m burn backends`.",
            ) from cause  # fmt: skip
        offered = getattr(plugin, "api_version", None)
        if self.api_version is not None and offered != self.api_version:
            newer = isinstance(offered, int) and offered > self.api_version
            raise BackendLoadError(
                short, f"{dist} {version} is made for contract version {offered}",
                got=f"contract version {self.api_version} here",
                remedy=f"Upgrade {'burn-backend' if newer else dist}.",
            )  # fmt: skip
        return plugin

    def _missing(self, name: str) -> BackendLoadError:
        known = KNOWN.get(self.group, {})
        here = ", ".join(self.names()) or "none"
        if name in known:
            package = known[name]
            if any(_origin(e)[0] == package for found in self._found().values() for e in found):
                remedy = f"{package} is installed and has none yet; see `python -m burn backends`."
            else:
                remedy = f"Install it of this project: uv sync --inexact --package {package}."
        else:
            remedy = nearest(name, [*self.names(), *known]) or "See `python -m burn backends`."
        return BackendLoadError(
            name, f"no plugin of that name in {self.group}", got=f"installed: {here}", remedy=remedy
        )


def _origin(entry: EntryPoint) -> tuple[str, str]:
    dist = entry.dist
    return (dist.name, dist.version) if dist is not None else ("?", "?")
