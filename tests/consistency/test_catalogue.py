"""The catalogue, its methods, kernels, rules, samples and documentation name the same things."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import Any

import pytest

import burn
from burn_autodiff.rules import RULES
from burn_dispatch import device
from burn_ir import CATALOG
from burn_testing.audit import audit, check_names
from burn_testing.audit.places import INNER, OPTIMIZERS, public
from burn_testing.samples import ERRORS, SAMPLES
from tests.conftest import HERE

NAMES = {e.name for e in CATALOG if "::" not in e.name}


@pytest.fixture(scope="module")
def lines() -> list[Any]:
    return audit(gradients=False)


def test_no_operation_has_a_gap(lines: list[Any]) -> None:
    assert [f"{line.entry}: {line.gaps}" for line in lines if line.gaps] == []
    assert {line.entry for line in lines} == NAMES


def test_samples_name_operations() -> None:
    assert set(SAMPLES) == NAMES
    assert set(ERRORS) == NAMES
    assert all(len(samples) >= 2 for samples in SAMPLES.values())


def test_edge_semantics_have_samples() -> None:
    # What an entry declares beyond shapes is shown by a sample made for it.
    shown = {
        "nan_propagates": "special", "nan_first_wins": "special", "nan_false": "special",
        "ties_lowest": "ties", "ties_last": "ties", "stable": "ties", "ignored_nan": "all_ignored",
        "saturating_cast": "special",
    }  # fmt: skip
    missing = []
    for entry in CATALOG:
        names = [s.name for s in SAMPLES.get(entry.name, [])]
        for edge in entry.edges:
            if edge in shown and not any(n.startswith(shown[edge]) for n in names):
                missing.append((entry.name, edge))
            if edge == "index_checked" and "out_of_range" not in [
                e.name for e in ERRORS[entry.name]
            ]:
                missing.append((entry.name, edge))
            if edge == "empty_raises" and "empty" not in [e.name for e in ERRORS[entry.name]]:
                missing.append((entry.name, edge))
    assert missing == []


def test_kernels_and_rules_name_operations() -> None:
    table = device("flex").resource.backend.table
    assert set(table) <= NAMES
    assert set(RULES) <= NAMES
    assert [n for n in RULES if not CATALOG[n].differentiable] == []


def test_exceptions_name_operations() -> None:
    assert INNER <= NAMES
    assert set(OPTIMIZERS) <= NAMES


def test_the_table_in_the_documentation_is_the_catalogue() -> None:
    path = HERE.parent / "docs" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = set(re.findall(r"^\| *`([\w:]+)`", module.operations_page(), re.MULTILINE))
    # What another test registered is no part of this project.
    assert {name for name in listed if "::" not in name} == NAMES


def test_free_functions_take_what_methods_take() -> None:
    # where: the condition leads, polygamma: the order, as in PyTorch; backward takes many outputs;
    # grad transforms.
    functions, different = public(), []
    own_way = {"burn.where", "burn.backward", "burn.grad", "burn.polygamma"}
    for called, fn in functions.items():
        method = functions.get(called.replace("burn.", "Tensor."))
        if called in own_way or not called.startswith("burn.") or method is None:
            continue
        own = list(inspect.signature(fn).parameters)[1:]
        its = list(inspect.signature(method).parameters)[1:]
        if own != its and "args" not in own + its:
            different.append((called, own, its))
    assert different == []


def test_pytorchs_names_work_or_say_what_to_write() -> None:
    found = check_names(HERE / "torch_names.txt")
    assert found.open == []
    assert len(found.works) > 300
    assert all(len(reason) > 3 for reason in found.excepted.values())


def test_what_is_said_instead_exists() -> None:
    found = check_names(HERE / "torch_names.txt")
    wrong = []
    for name, answer in found.answered.items():
        for path in re.findall(r"\bburn((?:\.\w+)+)", answer):
            value: Any = burn
            for part in path[1:].split("."):
                value = getattr(value, part, None)
            if value is None:
                wrong.append((name, f"burn{path}"))
        methods = re.findall(r"\bx\.(\w+)\(", answer)
        wrong += [(name, f"x.{m}") for m in methods if not hasattr(burn.Tensor, m)]
    assert wrong == []
