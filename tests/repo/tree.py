"""What the repository tests look at: the packages, their manifests and the files git knows."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Package:
    """One folder of `packages/`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.module

    @property
    def manifest(self) -> dict[str, Any]:
        return load_manifest(self.folder / "pyproject.toml")

    @property
    def files(self) -> list[Path]:
        return sorted(self.source.rglob("*.py"))


@cache
def load_manifest(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


@cache
def root_manifest() -> dict[str, Any]:
    return load_manifest(ROOT / "pyproject.toml")


@cache
def packages() -> tuple[Package, ...]:
    return tuple(Package(path) for path in sorted((ROOT / "packages").iterdir()) if path.is_dir())


@cache
def text_files() -> tuple[Path, ...]:
    """Every text file that is committed or would be, the copied case data apart."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    kept = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".json", ".sh", ""}
    paths = (ROOT / line for line in listed if not line.startswith("tests/cases/"))
    return tuple(path for path in paths if path.suffix in kept and path.is_file())


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """Every module a file imports, as (module, line, whether only for type checkers)."""
    found = []
    tree = parse(path)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, id(node) in typing_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, node.lineno, id(node) in typing_only))
    return found
