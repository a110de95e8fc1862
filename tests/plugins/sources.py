"""The tiny distributions of third parties: good ones, and one for each way to go wrong."""

from __future__ import annotations

from pathlib import Path

GOOD = """
from burn_flex.plugin import FlexBackend, FlexPlugin


class Loud(FlexBackend):
    name = "{name}"


class Plugin(FlexPlugin):
    name = "{name}"
    about = "a third party's backend"

    def create(self, index):
        return Loud(index)


plugin = Plugin()
"""
BROKEN = 'raise OSError("libacme.so.3: cannot open shared object file")\n'
OTHER_CONTRACT = """
class Plugin:
    name = "{name}"
    about = "made for another contract"
    api_version = {version}


plugin = Plugin()
"""
INCOMPLETE = """
from burn_backend import API_VERSION, Backend


class Plugin:
    name = "hollow"
    about = "has no kernels"
    api_version = API_VERSION

    def device_count(self):
        return 1

    def create(self, index):
        return Backend({}, {})


plugin = Plugin()
"""
DEAF = """
from burn_backend import API_VERSION


class Plugin:
    name = "deaf"
    about = "its driver breaks when asked for devices"
    api_version = API_VERSION

    def device_count(self):
        raise OSError("acme driver: ioctl failed")

    def create(self, index):
        raise OSError("acme driver: ioctl failed")


plugin = Plugin()
"""
# Sees hardware that then does not start.
DEAD = DEAF.replace('raise OSError("acme driver: ioctl failed")', "return 1", 1).replace(
    "deaf", "dead"
)
# Sees no hardware, which is no fault.
BARE = DEAF.replace('raise OSError("acme driver: ioctl failed")', "return 0", 1).replace(
    "deaf", "bare"
)
DECORATOR = """
from burn_backend import API_VERSION


class Decorator:
    name = "echo"
    api_version = API_VERSION
    about = "a third party's decorator"

    def backend(self, inner):
        print("wraps", inner.name)
        return inner


plugin = Decorator()
"""
FORMAT = """
import json

import numpy as np
from burn_store import API_VERSION, Reading, Spec


class TextReading(Reading):
    def __init__(self, stored):
        self.stored = stored

    def spec(self, name):
        return Spec(tuple(self.stored[name]["shape"]), "float32")

    def read(self, name, into=None):
        entry = self.stored[name]
        return np.array(entry["data"], np.float32).reshape(entry["shape"])

    def __iter__(self):
        return iter(self.stored)

    def __len__(self):
        return len(self.stored)


class Format:
    name = "{name}"
    suffixes = (".{name}",)
    api_version = {version}
    layout = "torch"
    options = ()

    def recognises(self, head):
        return head.startswith(b"ACME")

    def open(self, path, options):
        return TextReading(json.loads(path.read_bytes()[4:]))

    def write(self, handle, tensors, metadata):
        stored = {{
            name: {{"shape": list(t.spec.shape), "data": t.contiguous().ravel().tolist()}}
            for name, t in tensors.items()
        }}
        handle.write(b"ACME" + json.dumps(stored).encode())


plugin = Format()
"""
VIEW = """
from burn_train import API_VERSION, Observer


class View(Observer):
    api_version = {version}

    def begin(self, info):
        print("acme begins")


plugin = View
"""
# Distribution, entry name, source of the module, entry-point group.
PLUGINS = [
    ("acme-good", "good", GOOD.format(name="good"), "backends"),
    ("acme-broken", "broken", BROKEN, "backends"),
    ("acme-twin", "twin", GOOD.format(name="twin"), "backends"),
    ("other-twin", "twin", GOOD.format(name="twin"), "backends"),
    ("acme-old", "old", OTHER_CONTRACT.format(name="old", version=0), "backends"),
    ("acme-new", "new", OTHER_CONTRACT.format(name="new", version=99), "backends"),
    ("acme-hollow", "hollow", INCOMPLETE, "backends"),
    ("acme-deaf", "deaf", DEAF, "backends"),
    ("acme-dead", "dead", DEAD, "backends"),
    ("acme-bare", "bare", BARE, "backends"),
    ("acme-echo", "echo", DECORATOR, "decorators"),
    ("acme-mute", "mute", BROKEN, "decorators"),
    ("acme-late", "late", OTHER_CONTRACT.format(name="late", version=0), "decorators"),
    ("acme-text", "text", FORMAT.format(name="text", version="API_VERSION"), "store_formats"),
    ("acme-torn", "torn", BROKEN, "store_formats"),
    ("acme-stale", "stale", FORMAT.format(name="stale", version=0), "store_formats"),
    ("acme-double", "double", FORMAT.format(name="double", version=2), "store_formats"),
    ("other-double", "double", FORMAT.format(name="double", version=2), "store_formats"),
    ("acme-lines", "lines", VIEW.format(version="API_VERSION"), "train_views"),
    ("acme-dark", "dark", BROKEN, "train_views"),
    ("acme-past", "past", VIEW.format(version=0), "train_views"),
]
MANIFEST = """
[project]
name = "{distribution}"
version = "0.3.0"
requires-python = ">=3.11"

[project.entry-points."burn.{group}"]
{entry} = "{module}:plugin"

[build-system]
requires = ["uv_build>=0.13.6,<0.14"]
build-backend = "uv_build"
"""


def write_project(folder: Path, distribution: str, entry: str, source: str, group: str) -> Path:
    module = distribution.replace("-", "_")
    project = folder / distribution
    (project / "src" / module).mkdir(parents=True)
    (project / "src" / module / "__init__.py").write_text(source)
    manifest = MANIFEST.format(distribution=distribution, group=group, entry=entry, module=module)
    (project / "pyproject.toml").write_text(manifest)
    return project
