"""A Sphinx extension that writes the reference pages from the live packages.

Docstrings here are Markdown with Google's sections, so a page is made by laying them out; nothing
is parsed twice and nothing generated is committed. `docs/reference/` is made anew in each build.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

from burn_ir import CATALOG, Entry, Input

DOCS = Path(__file__).parent
OUT = DOCS / "reference"
HEADS = "Args Attributes Raises Shapes DTypes Units Returns Yields Gradient Example Examples Source"
SECTION = re.compile(rf"^({HEADS.replace(' ', '|')}):(?: +(.*))?$")
CODE = {"Example", "Examples"}
ITEMS = {"Args", "Attributes", "Raises", "Shapes"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write a page per package and the index over them."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    manifests = sorted((DOCS.parent / "packages").glob("*/pyproject.toml"))
    names = [path.parent.name for path in manifests]
    lines = ["# Reference", "", "Every public name, package by package.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", "", "operations", *names, "```", ""]
    (OUT / "index.md").write_text("\n".join(lines))
    (OUT / "operations.md").write_text(operations_page())
    for path in manifests:
        project = tomllib.loads(path.read_text())["project"]
        page = package_page(project["name"], project["description"])
        (OUT / f"{project['name']}.md").write_text(page)


def package_page(name: str, description: str) -> str:
    """Return the Markdown page of one package."""
    module = importlib.import_module(name.replace("-", "_"))
    parts = [f"# {name}\n\n{description}.\n"]
    constants = []
    for public in public_names(module):
        value = getattr(module, public)
        if inspect.ismodule(value):
            parts.append(f"## {public}\n\n{layout(inspect.getdoc(value))}")
            if name != "burn":  # the facade only repeats
                parts += namespace_parts(public, value)
        elif not str(getattr(value, "__module__", "")).startswith("burn"):
            constants.append(f"- `{public}`: `{short(value)}`")
        elif home(value) != module.__name__:
            constants.append(f"- `{public}`: see {link(value)}")
        elif inspect.isclass(value):
            parts.append(class_part(public, value))
        else:
            parts.append(f"## {public}\n\n{call(public, value)}{layout(inspect.getdoc(value))}")
    if constants:
        parts.append("## Other names\n\n" + "\n".join(constants) + "\n")
    return "\n".join(parts)


def namespace_parts(name: str, module: ModuleType) -> list[str]:
    """Return a section per function and class of a namespace such as `functional`."""
    functions = [
        (public, getattr(module, public))
        for public in public_names(module)
        if inspect.isfunction(getattr(module, public)) or inspect.isclass(getattr(module, public))
    ]
    return [
        f"### {name}.{public}\n\n{call(f'{name}.{public}', value)}{layout(inspect.getdoc(value))}"
        for public, value in functions
        if home(value) == module.__name__.partition(".")[0]
    ]


def public_names(module: ModuleType) -> list[str]:
    """Return the names a package promises; lazy ones stand in its `__all__` only."""
    listed = getattr(module, "__all__", None)
    names = list(vars(module)) if listed is None else listed
    future = type(__future__.annotations)
    return sorted(
        name
        for name in names
        if not name.startswith("_") and not isinstance(getattr(module, name), future)
    )


def home(value: Any) -> str:
    """Return the top-level package that defines an object."""
    return str(value.__module__).partition(".")[0]


def link(value: Any) -> str:
    """Return a link to the page on which an object is described."""
    name = home(value).replace("_", "-")
    return f"[{name}]({name}.md)"


def class_part(name: str, cls: type) -> str:
    """Return the section of a class: its docstring, then its public methods.

    Methods of a base that has a section of its own are left to it.
    """
    parts = [f"## {name}\n\n{call(name, cls)}{layout(inspect.getdoc(cls))}"]
    bases = [base for base in cls.__mro__ if base.__module__.startswith("burn")]
    described = [base for base in bases[1:] if is_public(base)]
    if described:
        parts.append(f"Has what `{described[0].__name__}` has, see {link(described[0])}.\n")
    covered = {inner for base in described for inner in base.__mro__}
    ours = [base for base in reversed(bases) if base not in covered]
    attributes = {key: value for base in ours for key, value in vars(base).items()}
    for attribute, value in sorted(attributes.items()):
        if attribute.startswith("_"):
            continue
        target = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(target, property):
            parts.append(f"### {name}.{attribute}\n\n{layout(inspect.getdoc(target))}")
        elif inspect.isfunction(target):
            head = call(f"{name}.{attribute}", target)
            parts.append(f"### {name}.{attribute}\n\n{head}{layout(inspect.getdoc(target))}")
    return "\n".join(parts)


def is_public(cls: type) -> bool:
    """Return whether a package promises the class under its name."""
    return getattr(importlib.import_module(home(cls)), cls.__name__, None) is cls


def call(name: str, value: Any) -> str:
    """Return the fenced signature of a callable, or nothing for what has none."""
    if not callable(value):
        return ""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    signature = re.sub(r" at 0x[0-9a-f]+", "", signature)
    # Annotations are texts; their quotes say nothing to a reader.
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return f"```text\n{name}{signature}\n```\n\n"


def short(value: Any) -> str:
    """Return a value on one line that fits a page."""
    text = " ".join(repr(value).split()).replace("`", "'")
    return re.sub(r" at 0x[0-9a-f]+", "", text if len(text) < 80 else text[:77] + "...")


def layout(doc: str | None) -> str:
    """Return a docstring as Markdown: sections become bold heads, lists and fences."""
    if not doc:
        return ""
    out: list[str] = []
    lines = doc.splitlines()
    at = 0
    while at < len(lines):
        head = SECTION.match(lines[at])
        at += 1
        if head is None:
            out.append(lines[at - 1])
            continue
        body = [head.group(2)] if head.group(2) else []
        while at < len(lines) and (not lines[at] or lines[at].startswith(" ")):
            body.append(lines[at])
            at += 1
        out += ["", f"**{head.group(1)}**", "", *section(head.group(1), body), ""]
    return "\n".join(out) + "\n"


def section(name: str, body: list[str]) -> list[str]:
    """Return the lines of one section's body."""
    text = inspect.cleandoc("\n".join(["", *body])).splitlines()
    if name in CODE:
        return ["```pycon", *text, "```"]
    if name not in ITEMS:
        return text
    out = []
    for line in text:
        item = re.match(r"^(\*{0,2}[\w., ]+|`[^`]+`): (.*)$", line)
        if item:
            out.append(f"- `{item.group(1).strip('`')}`: {item.group(2)}")
        else:
            out.append("  " + line.strip() if line.startswith(" ") else line)
    return out


def operations_page() -> str:
    """Return the table of the catalogue, class by class."""
    parts = [
        "# Operations\n",
        "Every operation of the catalogue, as this version declares it. Inputs: `~` a Python",
        "scalar may stand here and the input joins the promotion, `^` it joins the promotion,",
        "`?` optional, `*` a list of tensors. A *core* operation is in every backend, an",
        "*optional* one may be missing, a *derived* one is written in others where a backend has",
        "no kernel of its own. Gradients: *any order*, *first order*, or none.\n",
    ]
    entries = sorted(CATALOG, key=lambda entry: entry.name)
    for klass in dict.fromkeys(entry.klass for entry in CATALOG):
        parts += [f"## {klass.capitalize()}\n"]
        parts += ["| operation | inputs | attributes | grade | gradients | what |"]
        parts += ["| --- | --- | --- | --- | --- | --- |"]
        parts += [row(entry) for entry in entries if entry.klass == klass] + [""]
    return "\n".join(parts)


def row(entry: Entry) -> str:
    """Return the line of one operation."""
    inputs = " ".join(item.name + marks(item) for item in entry.inputs)
    attributes = " ".join(attribute.name for attribute in entry.attrs)
    order = "any order" if entry.closed else "first order"
    gradients = order if entry.differentiable else ""
    cells = [entry.name, inputs, attributes]
    quoted = [f"`{cell}`" if cell else "" for cell in cells]
    doc = entry.doc.replace("|", "\\|")
    return "| " + " | ".join([*quoted, entry.grade, gradients, doc]) + " |"


def marks(item: Input) -> str:
    """Return the signs an input carries in a signature."""
    promoted = "~" if item.scalar else "^" if item.promoted else ""
    return promoted + ("*" if item.many else "") + ("?" if item.optional else "")
