"""The catalogue as a whole, and registration by third parties."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from burn_ir import CATALOG, EDGES, Catalog, Entry, Spec, bind, parse, register
from burn_ir.rules.basic import broadcast
from burn_ir.scalar import RESERVED, names
from burn_std import GraphError
from burn_std.dtypes import float32

OWN = [e for e in CATALOG if "::" not in e.name]
EACH = pytest.mark.parametrize("entry", OWN, ids=lambda e: e.name)


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """The catalogue, without what the test registered once it is over."""
    count = len(CATALOG)
    yield CATALOG
    for extra in CATALOG.by_code[count:]:
        del CATALOG._by_name[extra.name]
    del CATALOG.by_code[count:]


def made(name: str = "mypkg::twice", **more: Any) -> Entry:
    return Entry(name, "x~", "", broadcast(name, "any"), "map", "x + x", **more)


@EACH
def test_entry_is_complete(entry: Entry) -> None:
    assert CATALOG.by_code[entry.code] is entry is CATALOG[entry.name]
    assert entry.name.isidentifier() and entry.doc and entry.outputs
    assert set(entry.edges) <= set(EDGES)
    assert entry.multi == (len(entry.outputs) > 1 or entry.outputs == ("list",))
    assert not (entry.lift and entry.accepts != "float")


@EACH
def test_maps_and_only_maps_have_an_expression(entry: Entry) -> None:
    assert (entry.klass == "map") == (entry.expr is not None)
    if entry.expr is not None:
        found = names(parse(entry.expr, entry.name))
        known = {i.name for i in entry.inputs} | {a.name for a in entry.attrs}
        assert {i.name for i in entry.inputs} <= found <= known | set(RESERVED)


@EACH
def test_derived_entries_lead_to_a_documented_function(entry: Entry) -> None:
    if entry.grade == "derived":
        function = entry.decompose
        assert function is not None and function.__doc__
        assert function is entry.decompose
    else:
        assert entry.decompose is None


def test_the_minimum_of_a_backend_stays_small() -> None:
    grades = {g: sum(e.grade == g for e in OWN) for g in ("core", "optional", "derived")}
    assert grades["core"] <= 70
    assert grades["optional"] <= 30


def test_decompositions_end_in_primitives() -> None:
    """The source of every decomposition names operations that exist, and none reaches itself."""
    calls = {e.name: called(e) for e in OWN if e.grade == "derived"}
    for name, found in calls.items():
        assert found <= {e.name for e in OWN}, name
    settled = {e.name for e in OWN if e.grade != "derived"}
    waiting = dict(calls)
    while waiting:
        ready = [n for n, found in waiting.items() if found - {n} <= settled]
        assert ready, f"these call each other: {waiting}"
        settled.update(ready)
        for n in ready:
            del waiting[n]


def called(entry: Entry) -> set[str]:
    """Return the operations that a decomposition and the helpers of its module call."""
    import ast
    import inspect

    function = inspect.unwrap(entry.decompose)  # type: ignore[arg-type]
    module = sys.modules[function.__module__]
    tree = ast.parse(inspect.getsource(module))
    bodies = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    seen, todo, out = set(), [function.__name__], set()
    while todo:
        body = bodies[todo.pop()]
        seen.add(body.name)
        for node in ast.walk(body):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ops":
                out.add(node.attr)
            if isinstance(node, ast.Name) and node.id in bodies and node.id not in seen:
                todo.append(node.id)
    return out


def test_registered_entry_is_like_any_other(catalog: Catalog, fake: Any) -> None:
    twice = register(made(expr="x + x", decompose=lambda ops, x: ops.add(x, x)))
    assert catalog["mypkg::twice"] is twice is catalog.by_code[twice.code]
    assert twice.grade == "derived"
    assert fake.run(twice, [fake.tensor([1.0, 2.0])]).data == [2.0, 4.0]
    assert "mypkg::twice" in catalog
    assert catalog.get("mypkg::thrice") is None


@pytest.mark.parametrize("name", ["twice", "::twice", "mypkg::", "my pkg::twice", "a::b::c", ""])
def test_registered_name_has_a_package(catalog: Catalog, name: str) -> None:
    count = len(catalog)
    with pytest.raises(GraphError, match="package::name"):
        register(made(name))
    assert len(catalog) == count


def test_name_is_unique(catalog: Catalog) -> None:
    register(made())
    with pytest.raises(GraphError, match="unique"):
        register(made())


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(GraphError, match=r"no such operation.*Did you mean 'softmax'\?"):
        CATALOG["sofmax"]
    with pytest.raises(GraphError, match=r"no such operation in the catalogue$"):
        CATALOG["zzzzzzzzzz"]


@pytest.mark.parametrize(
    ("inputs", "attrs", "more"),
    [
        ("x", "alpha@ dims", {}),
        ("x", "", {"edges": "no_such_edge"}),
        ("x", "", {"grade": "derived"}),
        ("x", "", {"grade": "core", "decompose": lambda ops, x: x}),
        ("x x", "", {}),
        ("x", "x", {}),
    ],
)
def test_entry_that_breaks_a_rule_is_refused(inputs: str, attrs: str, more: Any) -> None:
    with pytest.raises(GraphError, match="entry:"):
        Entry("mypkg::odd", inputs, attrs, broadcast("odd", "any"), "map", "odd", **more)


def test_signature_language() -> None:
    entry = Entry("p::f", "x~ y^ bias?^ xs*", "dims shape# a@", broadcast("f", "any"), "map", "f")
    assert [(i.scalar, i.promoted, i.optional, i.many) for i in entry.inputs] == [
        (True, True, False, False), (False, True, False, False),
        (False, True, True, False), (False, False, False, True),
    ]  # fmt: skip
    assert [(a.name, a.kind) for a in entry.attrs] == [
        ("dims", "static"), ("shape", "extent"), ("a", "scalar"),
    ]  # fmt: skip
    assert repr(entry) == "<op p::f>"


def test_spec_prints_and_compares() -> None:
    spec = Spec((2, 3), float32)
    assert repr(spec) == "float32[2, 3]"
    assert spec == Spec((2, 3), float32) and hash(spec) == hash(Spec((2, 3), float32))
    assert spec != Spec((3, 2), float32) and spec.rank == 2


def test_import_loads_neither_programs_nor_decompositions() -> None:
    code = (
        "import burn_ir, sys; "
        "print([m for m in sys.modules if m.startswith('burn_ir') and 'decompose' in m "
        "or m in ('burn_ir.program', 'burn_ir.scalar', 'numpy', 'ast', 'dataclasses')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lazy_names_are_listed() -> None:
    import burn_ir

    assert "Program" in dir(burn_ir)
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        burn_ir.nothing_of_that_name  # noqa: B018 - the access is the test


@pytest.mark.parametrize("floating", [True, False])
@EACH
def test_expressions_bind_for_every_kind(entry: Entry, floating: bool) -> None:
    if entry.expr is None:
        return
    known: dict[str, Any] = {"floating": floating, "largest": 1}
    known |= {a.name: 1 for a in entry.attrs if a.kind == "static"}
    known |= {i.name: None for i in entry.inputs if i.optional}
    if entry.name == "nan_to_num":
        known |= {"nan": None, "posinf": None, "neginf": None}
    assert " if " not in str(bind(parse(entry.expr, entry.name), known))


def test_who_follows_a_catalogue_is_told_of_every_entry_and_of_later_ones() -> None:
    catalog, told = Catalog(), []
    first, second = CATALOG["add"], CATALOG["mul"]
    codes = first.code, second.code
    try:
        catalog.add(first)
        catalog.follow(told.append)
        catalog.add(second)
    finally:
        first.code, second.code = codes
    assert told == [first, second]
