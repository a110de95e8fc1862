"""Every task a person or CI runs. `nox -l` lists them; plain `nox` runs what CI runs.

Two environments serve all default sessions, both made by `uv sync` from the pins in
`pyproject.toml`: one with the whole workspace, and one that is turned into the lone environment
of each package in turn, so that an import nobody declared fails.
"""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nox

ROOT = Path(__file__).parent
REPORTS = ROOT / ".nox" / "reports"
PACKAGES = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
BACKENDS = ["flex", "fusion-flex", "cpu", "eager-cpu"]
# Those that `matrix` adds: OpenCL needs a driver, which a fresh machine has not.
MORE = ["opencl", "eager-opencl"]
GPUS = ["cuda", "eager-cuda"]
# The tests that cross packages; those of other sessions left out.
CROSSING = [
    *("tests", "packages/burn-testing/src/burn_testing/conformance"),
    *(f"--ignore=tests/{name}" for name in ("repo", "plugins", "installs")),
]
# What CI runs on a device that compiles: every operator with a part of its cases, another part each
# day. Both meet the same kernels, so the second finds most of them in the cache.
_FEW = ["tests/bugs", "tests/conformance/test_ops_cases.py"]
COMPILED = {
    "cpu": [*_FEW, "tests/laws", "--burn-case-share=8"],
    "eager-cpu": [*_FEW, "tests/laws/test_backends.py", "--burn-case-share=16"],
}
# The peer that `bench` compares with. It is no dependency of anything here.
TORCH = "torch==2.13.0"
# Not the newest: from 1.30 on it brings a compiler of kernels, of which nothing here makes use.
HELD = "nvidia-cudnn-frontend==1.26.0"

nox.needs_version = ">=2026.10"
nox.options.default_venv_backend = "none"
nox.options.sessions = [
    "lint",
    "layers",
    "repo",
    "types",
    "unit",
    *(f"tests({backend})" for backend in BACKENDS),
    "devices",
    "doctest",
    "docs",
    "examples",
    "plugins",
    "build",
]


# --- how a session reaches its environment -------------------------------------------------------


def uv(
    session: nox.Session,
    *args: str,
    env: str = "workspace",
    silent: bool = False,
    **variables: str | None,
) -> str:
    """Run uv against the environment `.nox/<env>`, whatever environment nox itself runs in."""
    found = shutil.which("uv")
    command = [found] if found else [sys.executable, "-m", "uv"]
    settings: dict[str, str | None] = {
        "UV_PROJECT_ENVIRONMENT": str(ROOT / ".nox" / env),
        "UV_NO_PROGRESS": "1",
        "VIRTUAL_ENV": None,
    }
    said = session.run(*command, *args, env=settings | variables, external=True, silent=silent)
    return str(said)


def workspace(session: nox.Session, *command: str, **variables: str | None) -> None:
    """Run a command in the environment that holds every package and every tool."""
    uv(session, "run", "--quiet", "--all-groups", *command, **variables)


def pytest(session: nox.Session, name: str, *args: str) -> None:
    """Run pytest in the workspace environment and keep its counts for the closing line."""
    # Two workers share two cores; a BLAS that starts threads of its own would only slow both.
    threads = {"OPENBLAS_NUM_THREADS": "1"} if "-n2" in args else {}
    workspace(session, "pytest", *args, report(name), *session.posargs, **threads)


def report(name: str) -> str:
    """The option that makes pytest leave its counts where `print_total` finds them."""
    if not REPORTS.exists() or not _totalled:
        shutil.rmtree(REPORTS, ignore_errors=True)
        REPORTS.mkdir(parents=True)
        atexit.register(print_total)
        _totalled.append(name)
    return f"--junitxml={REPORTS / name}.xml"


_totalled: list[str] = []


def print_total() -> None:
    """Print the sum over all pytest runs of this nox run, as the last line."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for file in REPORTS.glob("*.xml"):
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            for key in counts:
                counts[key] += int(suite.get(key, "0"))
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    # nox logs to stderr; without the flush its summary could come after this line.
    sys.stderr.flush()
    print(f"{passed} passed, {failed} failed, {counts['skipped']} skipped", flush=True)


# --- what CI runs --------------------------------------------------------------------------------


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint rules (ruff)."""
    workspace(session, "ruff", "format", "--check", ".")
    workspace(session, "ruff", "check", ".")


@nox.session
def layers(session: nox.Session) -> None:
    """The arrows between the packages (import-linter)."""
    workspace(session, "lint-imports")


@nox.session
def repo(session: nox.Session) -> None:
    """The house rules as tests: sizes, privates, versions, public names, import cost."""
    pytest(session, "repo", "tests/repo")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types over all sources (mypy)."""
    workspace(session, "mypy")


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def unit(session: nox.Session, package: str) -> None:
    """One package's own tests, with only what it declares installed."""
    uv(session, "sync", "--quiet", "--package", package, env="unit")
    # The conftest of the root serves what crosses packages; a lone package may not lean on it.
    uv(
        session,
        *("run", "--no-sync", "pytest", f"packages/{package}/tests"),
        *("--rootdir", ".", "-c", "pyproject.toml", "--confcutdir", f"packages/{package}/tests"),
        *("-p", "no:cacheprovider", report(f"unit-{package}"), *session.posargs),
        env="unit",
    )
    # A library that tests of a package ask for is one that it declares for them.
    suite = ElementTree.parse(REPORTS / f"unit-{package}.xml")
    left_out = {str(s.get("message")) for s in suite.iter("skipped")}
    missing = sorted(message for message in left_out if message.startswith("could not import"))
    if missing:
        session.error("\n".join(missing))


@nox.session
@nox.parametrize("backend", BACKENDS + MORE + GPUS, ids=BACKENDS + MORE + GPUS)
def tests(session: nox.Session, backend: str) -> None:
    """What crosses packages: operator cases, gradients, bugs, laws; on one backend."""
    # A fresh machine compiles every kernel first, half an hour for all; `matrix` runs them all.
    given = COMPILED.get(backend, CROSSING)
    dependent = "--burn-dependent=only"
    pytest(session, f"tests-{backend}", *given, "-n2", f"--burn-backend={backend}", dependent)


@nox.session
def devices(session: nox.Session) -> None:
    """What crosses packages and names its devices itself: kernels, recording, capture, faults."""
    pytest(session, "devices", *CROSSING, "-n2", "--burn-dependent=none")


@nox.session
def doctest(session: nox.Session) -> None:
    """Every example in docstrings and Markdown files, executed."""
    # What is a test already runs elsewhere.
    apart = ["--ignore-glob=*/tests/*", "--ignore-glob=*/conformance/test_*"]
    # `docs/reference` repeats docstrings; it is made when the site is built.
    pages = [
        str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    ]
    places = ["packages", *(page for page in pages if not page.startswith("docs/reference/"))]
    # The blocks of one page share their names, so a file stays with one worker.
    spread = ["-n2", "--dist=loadfile"]
    pytest(session, "doctest", *places, "--doctest-modules", *apart, *spread)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site; a warning is an error (Sphinx, MyST)."""
    out = ROOT / "docs" / "_build"
    shutil.rmtree(out, ignore_errors=True)
    workspace(session, "sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", str(out))


@nox.session
def examples(session: nox.Session) -> None:
    """The examples, run as a user runs them."""
    pytest(session, "examples", "examples")


@nox.session
def plugins(session: nox.Session) -> None:
    """Third-party plugins from wheels: good, broken, duplicate, wrong version."""
    pytest(session, "plugins", "tests/plugins")


@nox.session
def build(session: nox.Session) -> None:
    """Wheels of all packages, installed without an index into empty environments."""
    pytest(session, "build", "tests/installs")


# --- on demand -----------------------------------------------------------------------------------


@nox.session
def fmt(session: nox.Session) -> None:
    """Format the sources and apply the safe fixes of the linter."""
    workspace(session, "ruff", "format", ".")
    workspace(session, "ruff", "check", "--fix", ".")


@nox.session
def audit(session: nox.Session) -> None:
    """Per catalogue entry: method, kernel, rule, samples, checks, docs. Fails on a gap."""
    workspace(session, "python", "-m", "burn_testing.audit", *session.posargs)


@nox.session
def matrix(session: nox.Session) -> None:
    """Every test on every backend, nothing sampled, in parts that go on where they were stopped."""
    threads = {"OPENBLAS_NUM_THREADS": "1"}
    workspace(session, "python", "-m", "tests.matrix", *session.posargs, **threads)


@nox.session(venv_backend="virtualenv")
def bench(session: nox.Session) -> None:
    """Ratios against numpy and PyTorch, measured in the same run; gates nothing."""
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text("\n".join(pins["constraint-dependencies"]))
    session.install(TORCH, "-c", str(constraints))
    here = [arg for name in PACKAGES for arg in ("-e", f"packages/{name}")]
    session.install(*here, "-c", str(constraints))
    for script in session.posargs or sorted(str(path) for path in ROOT.glob("benchmarks/*.py")):
        session.run("python", script)


@nox.session
def lock(session: nox.Session) -> None:
    """Take the newest versions and write them as exact pins into pyproject.toml."""
    manifest = ROOT / "pyproject.toml"
    before = manifest.read_text()
    builders = Path(session.create_tmp()) / "builders.txt"
    builders.write_text("\n".join(build_requirements()))
    bare = ["--quiet", "--no-header", "--no-annotate"]
    everything = ["--all-packages", "--all-groups", "--no-emit-workspace", "--no-hashes"]
    try:
        # The pins of today would hold the resolver back.
        held = with_pins(before, "constraint", HELD)
        manifest.write_text(with_pins(held, "build-constraint", ""))
        uv(session, "lock", "--quiet", "--upgrade")
        # One of the CUDA versions at a time: they exclude each other.
        exported = [
            uv(session, "export", *bare, *everything, *extras, silent=True)
            for extras in (["--all-extras", "--no-extra", "cuda12"], ["--extra", "cuda12"])
        ]
        text = with_pins(before, "constraint", "\n".join(exported))
        built = uv(session, "pip", "compile", *bare, str(builders), silent=True)
        manifest.write_text(with_pins(text, "build-constraint", built))
        uv(session, "lock", "--quiet")
    except BaseException:
        manifest.write_text(before)
        raise


def build_requirements() -> list[str]:
    """What the build backends of the packages ask for."""
    manifests = [ROOT / "packages" / name / "pyproject.toml" for name in PACKAGES]
    loaded = [tomllib.loads(path.read_text()) for path in manifests]
    return sorted({line for manifest in loaded for line in manifest["build-system"]["requires"]})


def with_pins(manifest: str, kind: str, requirements: str) -> str:
    """Return the manifest with the exact pins of a requirements text as its array of that kind."""
    pins = {line.split(";")[0].strip() for line in requirements.splitlines() if "==" in line}
    lines = "".join(f'    "{pin}",\n' for pin in sorted(pins))
    array = f"{kind}-dependencies = [\n{lines}]" if pins else f"{kind}-dependencies = []"
    return re.sub(rf"^{kind}-dependencies = \[[^\]]*\]", array, manifest, flags=re.MULTILINE)
