"""Fresh environments and wheels, for the tests that install things as a stranger would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def uv(*args: str) -> None:
    """Run uv; a failure shows what it said."""
    found = shutil.which("uv")
    command = [found] if found else [sys.executable, "-m", "uv"]
    done = subprocess.run([*command, *args], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def pinned(*names: str) -> list[str]:
    """The exact pins of the named third-party packages."""
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    listed = dict(pin.split("==") for pin in pins["constraint-dependencies"])
    return [f"{name}=={listed[name]}" for name in names]


def build_wheels(folder: Path, *sources: Path) -> Path:
    """Build the wheels of project folders, or of every package of the workspace."""
    for arguments in [[str(source)] for source in sources] or [["--all-packages"]]:
        uv("build", "--quiet", "--wheel", "--out-dir", str(folder), *arguments)
    return folder


class Environment:
    """A virtual environment with nothing in it."""

    def __init__(self, folder: Path) -> None:
        self.python = str(folder / "bin" / "python")
        uv("venv", "--quiet", "--python", sys.executable, str(folder))

    def install_needs_of(self, package: str) -> None:
        """Install what is not ours of all that a package needs, at its pins."""
        listed = Path(self.python).parents[1] / "needs.txt"
        bare = ["--quiet", "--no-header", "--no-annotate", "--no-hashes", "--no-emit-workspace"]
        uv("export", *bare, "--no-dev", "--package", package, "--output-file", str(listed))
        uv("pip", "install", "--quiet", "--python", self.python, "--requirements", str(listed))

    def install_third_party(self, *names: str) -> None:
        """Install what is not ours, at its pins; from here on no index is needed."""
        uv("pip", "install", "--quiet", "--python", self.python, *pinned(*names))

    def install(self, *names: str, wheels: list[Path]) -> None:
        """Install distributions from folders of wheels alone."""
        places = [arg for folder in wheels for arg in ("--find-links", str(folder))]
        flags = ["--quiet", "--python", self.python, "--no-index"]
        uv("pip", "install", *flags, *places, *names)

    def uninstall(self, *names: str) -> None:
        """Take distributions out again."""
        uv("pip", "uninstall", "--quiet", "--python", self.python, *names)

    def run(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python away from the repository, so that only wheels are seen."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BURN_", "PYTHON"))}
        return subprocess.run(
            [self.python, "-I", *args],
            cwd=Path(self.python).parent,
            env=kept | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, code: str, **variables: str) -> str:
        """Run code that must succeed and return what it prints."""
        done = self.run("-W", "error", "-c", code, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
