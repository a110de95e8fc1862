"""The table is complete and its signatures are those of the catalogue."""

from __future__ import annotations

import inspect

import pytest

from burn_autodiff.rules import RULES, rule
from burn_ir import CATALOG
from burn_std import AutodiffError, GraphError

DIFFERENTIABLE = sorted(e.name for e in CATALOG if e.differentiable and "::" not in e.name)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rule_exists_and_reads_what_its_entry_has(name: str) -> None:
    entry, found = CATALOG[name], RULES[name]
    inputs = [i.name for i in entry.inputs]
    assert len(inspect.signature(found.fn).parameters) == 2 + len(found.saves)
    assert set(found.saves) <= {*inputs, *entry.outputs}
    # A name shared by an input and an output would make `saves` ambiguous.
    assert not set(inputs) & set(entry.outputs) & set(found.saves)


def test_rules_are_of_differentiable_entries_only() -> None:
    assert not {n for n in RULES if n in CATALOG and not CATALOG[n].differentiable}


def test_every_rule_has_its_formula() -> None:
    assert not [r.name for r in RULES.values() if not r.fn.__doc__]


def test_second_rule_of_an_entry_is_refused() -> None:
    with pytest.raises(AutodiffError) as caught:
        rule("exp", saves="out")(lambda c, g, out: g)
    assert caught.value.op == "exp"


def test_wrong_number_of_parameters_is_refused() -> None:
    with pytest.raises(AutodiffError, match="parameters"):
        rule("argmax", saves="x y")(lambda c, g, x: g)
    assert "argmax" not in RULES


def test_rule_of_no_operation_is_refused() -> None:
    with pytest.raises(GraphError, match="no such operation"):
        rule("no_such_entry")
