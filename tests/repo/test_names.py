"""Every public name is a promise: written down, and the only thing a sibling imports."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, Package, imports, packages, parse

STORED = Path(__file__).with_name("public_names.txt")
# Submodules that are promised beside the package's own names.
PUBLIC_SUBMODULES = {
    "burn_std.dtypes",  # every dtype under its name
    "burn_ir.rules.basic",  # shape arithmetic and checks that kernels share with the rules
    "burn_ir.rules.shape",
    "burn_core.init",  # initializers
    "burn_dataset.augment",  # changes of images
    "burn_nn.parametrizations",  # normed weights
    "burn_nn.rnn",  # packed sequences
    "burn_cube.spi",  # what a backend written in the kernel language builds on
    "burn_optim.lr_scheduler",  # schedules
    "burn_tensor.fft",  # namespaces of free functions
    "burn_tensor.functional",
    "burn_tensor.guard",  # words for wrong arguments, for what is built above
    "burn_tensor.linalg",
}

EVERY = pytest.mark.parametrize("package", packages(), ids=lambda package: package.name)


def exported(package: Package) -> list[str]:
    """What `__init__` promises: its `__all__`, or what it re-exports as `X as X` and defines."""
    module = importlib.import_module(package.module)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    names = []
    for node in parse(package.source / "__init__.py").body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return sorted(name for name in names if not name.startswith("_"))


def test_public_names_are_the_stored_ones() -> None:
    names = [f"{p.module}.{name}" for p in packages() for name in sorted(exported(p))]
    stored = STORED.read_text().splitlines()
    added, removed = sorted(set(names) - set(stored)), sorted(set(stored) - set(names))
    # To accept: python -m tests.repo.test_names
    assert (added, removed) == ([], [])


@EVERY
def test_public_names_are_real(package: Package) -> None:
    names = exported(package)
    found_by_entry_point = package.manifest["project"].get("entry-points")
    assert names or found_by_entry_point, "a package re-exports its public names in __init__"
    assert len(names) == len(set(names))
    module = importlib.import_module(package.module)
    assert not [name for name in names if not hasattr(module, name)]


@EVERY
def test_siblings_are_imported_by_their_public_names(package: Package) -> None:
    siblings = {sibling.module for sibling in packages()} - {package.module}
    allowed = siblings | PUBLIC_SUBMODULES
    found = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for file in package.files
        for module, line, _ in imports(file)
        if module.partition(".")[0] in siblings and module not in allowed
    ]
    assert not found


@EVERY
def test_no_private_name_of_a_sibling_is_imported(package: Package) -> None:
    siblings = {sibling.module for sibling in packages()} - {package.module}
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.module}.{alias.name}"
        for file in package.files
        for node in ast.walk(parse(file))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in siblings
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert not found


if __name__ == "__main__":
    lines = [f"{p.module}.{name}\n" for p in packages() for name in sorted(exported(p))]
    STORED.write_text("".join(lines))
