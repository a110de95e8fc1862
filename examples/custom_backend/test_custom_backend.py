"""The distribution as a stranger has it: a wheel in a fresh environment, without an index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.environments import ROOT, Environment, build_wheels

HERE = Path(__file__).parent
SOURCE = HERE / "src" / "plain_backend" / "__init__.py"
# The conformance suite and what it stands on; flex is what results are compared with.
OURS = ("burn-std", "burn-ir", "burn-backend", "burn-dispatch", "burn-tensor", "burn-testing",
        "burn-flex", "burn-autodiff", "burn-fusion")  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plain")
    wheels = build_wheels(folder / "wheels", *(ROOT / "packages" / name for name in OURS), HERE)
    made = Environment(folder / "env")
    made.install_needs_of("burn-testing")
    made.install_needs_of("burn-flex")
    made.install("plain-backend", *OURS, wheels=[wheels])
    return made


@pytest.mark.parametrize("name", ["plain", "fusion-plain"])
def test_it_passes_the_acceptance_test(environment: Environment, name: str) -> None:
    suite = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "burn_testing.conformance"]
    done = environment.run(*suite, "--burn-backend", name)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert re.search(r"^\d{3,} passed in", done.stdout, re.MULTILINE), done.stdout[-300:]


def test_it_differentiates_and_prints_like_any_other(environment: Environment) -> None:
    code = (
        "from burn_dispatch import device\n"
        "from burn_tensor import tensor\n"
        "x = tensor([3.0], device=device('plain').autodiff()).require_grad()\n"
        "print(x.device, x.grad((x * x).sum().backward()).tolist())"
    )
    assert environment.says(code) == "autodiff<plain> [6.0]"


@pytest.mark.parametrize(
    ("call", "entry"),
    [
        ("x.sort(-1)", "sort"),
        ("fft.rfft(x)", "rfft"),
        ("linalg.solve(x.reshape(1, 1), x.reshape(1, 1))", "solve"),
    ],
)
def test_what_it_lacks_is_refused_by_name(environment: Environment, call: str, entry: str) -> None:
    code = (
        "from burn_dispatch import device\n"
        "from burn_std import UnsupportedOpError\n"
        "from burn_tensor import fft, linalg, tensor\n"
        "x = tensor([3.0], device=device('plain'))\n"
        f"try: {call}\n"
        "except UnsupportedOpError as error: print(error.op, '|', error)"
    )
    assert environment.says(code).startswith(f"{entry} | {entry}: plain has neither")


def test_it_is_small_and_stands_on_the_contract_alone() -> None:
    text = SOURCE.read_text() + (HERE / "pyproject.toml").read_text()
    assert len(text.splitlines()) < 300
    imported = re.findall(r"^(?:from|import) (\w+)", SOURCE.read_text(), re.MULTILINE)
    beyond = {"__future__", "math", "collections", "functools", "itertools", "typing"}
    assert set(imported) - beyond == {"numpy", "burn_backend"}
