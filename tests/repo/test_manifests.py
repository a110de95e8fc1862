"""The manifests agree: one version, pinned siblings, nothing imported that is not declared."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points, packages_distributions

import pytest

from tests.repo.tree import ROOT, Package, imports, packages, root_manifest

# Distributions whose import name is another.
OTHER_NAME = {"cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy", "nvidia-cudnn-frontend": "cudnn"}
EVERY = pytest.mark.parametrize("package", packages(), ids=lambda package: package.name)


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_root_knows_every_package() -> None:
    names = sorted(package.name for package in packages())
    root = root_manifest()
    version = root["project"]["version"]
    assert root["project"]["dependencies"] == [f"{name}=={version}" for name in names]
    assert sorted(root["tool"]["uv"]["sources"]) == names
    assert root["tool"]["importlinter"]["root_packages"] == [
        package.module for package in packages()
    ]


def test_every_package_has_its_place_in_the_arrows() -> None:
    contracts = root_manifest()["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["id"] == "arrows")["layers"]
    listed = {name for line in layers for name in line.split(" | ")}
    assert listed == {package.module for package in packages()} - {"burn_testing"}


def declared_by(package: Package) -> dict[str, list[str]]:
    """Every list of requirements of a package: its own, its extras', its groups'."""
    project = package.manifest["project"]
    extras = project.get("optional-dependencies", {})
    groups = package.manifest.get("dependency-groups", {})
    return {"dependencies": project["dependencies"], **extras, **groups}


@EVERY
def test_version_is_the_one_of_the_root(package: Package) -> None:
    assert package.manifest["project"]["version"] == root_manifest()["project"]["version"]


@EVERY
def test_siblings_are_pinned_and_others_are_not(package: Package) -> None:
    version = root_manifest()["project"]["version"]
    siblings = {sibling.name for sibling in packages()}
    for requirement in (line for lines in declared_by(package).values() for line in lines):
        name = name_of(requirement)
        assert requirement == (f"{name}=={version}" if name in siblings else name)


@EVERY
def test_folder_is_complete(package: Package) -> None:
    assert package.name.startswith("burn")
    assert (package.source / "py.typed").is_file()
    assert (package.source / "__init__.py").is_file()
    readme = (package.folder / "README.md").read_text()
    assert readme.startswith(f"# {package.name}\n")
    assert len(readme.splitlines()) <= 60, "a package README is one screen"
    assert list((package.folder / "tests").rglob("test_*.py")), "a package has its own tests"
    assert package.manifest["project"]["requires-python"] == ">=3.11"
    assert package.manifest["build-system"]["build-backend"] == "uv_build"


@EVERY
def test_imports_are_declared_and_declarations_used(package: Package) -> None:
    distributions = packages_distributions()
    siblings = {sibling.module: sibling.name for sibling in packages()}
    used: dict[str, str] = {}
    for file in package.files:
        for module, line, typing_only in imports(file):
            top = module.partition(".")[0]
            if top in sys.stdlib_module_names or top == package.module or typing_only:
                continue
            owner = siblings.get(top) or name_of(distributions.get(top, [top])[0])
            used.setdefault(owner, f"{file.relative_to(ROOT)}:{line}")
    declared = {name_of(line) for line in package.manifest["project"]["dependencies"]}
    extras = package.manifest["project"].get("optional-dependencies", {}).values()
    # Every distribution of cupy installs the one module `cupy`.
    optional = {OTHER_NAME.get(name_of(line), name_of(line)) for lines in extras for line in lines}
    undeclared = {name: place for name, place in used.items() if name not in declared | optional}
    assert not undeclared
    if package.name != "burn":  # the facade declares what it reaches by entry point, too
        assert declared <= set(used), f"declared but never imported: {declared - set(used)}"


@EVERY
def test_entry_points_lead_to_objects(package: Package) -> None:
    for group, entries in package.manifest["project"].get("entry-points", {}).items():
        for name, value in entries.items():
            (found,) = (e for e in entry_points(group=group, name=name) if e.value == value)
            assert found.load() is not None


def test_every_third_party_package_is_pinned_exactly() -> None:
    pins = root_manifest()["tool"]["uv"]["constraint-dependencies"]
    assert pins == sorted(pins)
    assert all(re.fullmatch(r"[a-z0-9.-]+==[0-9][^*,; ]*", pin) for pin in pins)
    groups = [root_manifest()["dependency-groups"].values()]
    wanted = {name_of(line) for group in groups for lines in group for line in lines}
    for package in packages():
        wanted |= {name_of(line) for lines in declared_by(package).values() for line in lines}
    wanted -= {package.name for package in packages()}
    assert wanted <= {name_of(pin) for pin in pins}, "run `nox -s lock`"


def test_lock_file_is_ignored() -> None:
    ignored = subprocess.run(["git", "check-ignore", "-q", "uv.lock"], cwd=ROOT, check=False)
    assert ignored.returncode == 0
    tracked = subprocess.run(
        ["git", "ls-files", "uv.lock"], cwd=ROOT, check=True, capture_output=True
    )
    assert not tracked.stdout
