"""One warning where a loop makes another plan in every round, or a plan cannot become one call."""

from __future__ import annotations

import inspect
import itertools
import warnings

import pytest

import burn
from burn import Device, PlanChurnWarning, ReplayWarning

_INDICES = itertools.count(800)


@pytest.fixture
def device() -> Device:
    """A resource of its own, so that counts start at zero."""
    return burn.device(f"fusion-flex:{next(_INDICES)}")


def _said(rounds, n: int = 40) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(n):
            rounds(k)
    return [w for w in found if issubclass(w.category, (PlanChurnWarning, ReplayWarning))]


def _one(rounds, n: int = 40):
    (found,) = _said(rounds, n)
    return found


def _attribute(device):
    x = burn.ones(2, 3, 4, device=device)
    axes = list(itertools.permutations(range(3)))

    def step(k: int) -> None:
        y = (x + 1).exp().log().abs()
        y = y.permute(*axes[k % 6]).permute(*axes[k // 6 % 6])
        (y * 2).sum().item()

    return step


def test_a_setting(device):
    step = _attribute(device)
    found = _one(step)
    said = found.message
    assert found.filename == __file__
    assert found.lineno == inspect.getsourcelines(step)[1] + 3
    assert (said.op, said.what) == ("permute", "attribute")
    assert said.old.startswith("dims=(") and said.new.startswith("dims=(")
    assert said.old != said.new and 16 <= said.plans <= 20


def test_parts_of_a_long_program_are_no_rounds(device):
    x = burn.ones(2, 3, 4, device=device)
    axes = list(itertools.permutations(range(3)))
    recorder = device.resource.backend.recorder

    def long(_: int) -> None:
        for k in range(36):
            y = (x + 1).exp().log().abs()
            y = y.permute(*axes[k % 6]).permute(*axes[k // 6 % 6]) * 2
            recorder.cut(recorder.tls.h)
        y.sum().item()

    assert not _said(long, 2)
    assert device.resource.backend.report()["plans"] >= 36


def test_more_operations_in_each_round(device):
    x = burn.ones(4, device=device)

    def step(k: int) -> None:
        y = x
        for _ in range(k + 3):
            y = y + 1
        y.mean().item()

    said = _one(step).message
    assert (said.op, said.what, said.old, said.new) == ("add", "op", "mean", "add")


def test_results_that_are_held(device):
    x = burn.ones(4, device=device)
    kept = []

    def step(k: int) -> None:
        ys = [x]
        for _ in range(40):
            ys.append(ys[-1] + 1)
        kept.append(ys[k + 1])
        del ys[1:-1]
        ys[-1].sum().item()

    said = _one(step, 30).message
    assert (said.op, said.what) == ("add", "kept")


def test_dtypes_and_shapes_of_inputs():
    from burn_fusion.churn import difference
    from burn_ir import CATALOG

    neg, add = CATALOG["neg"].code, CATALOG["add"].code
    codes = ((neg, -1), (add, 0, -2))

    def outside(dtype, classes):
        return (codes, ((burn.float32, (2,)), (dtype, classes)))

    one = outside(burn.float32, (2,))
    assert difference(one, (1,), outside(burn.float32, (1,)), (1,)) == (
        "add", "shape", "float32[n]", "float32[1]",
    )  # fmt: skip
    assert difference(one, (1,), outside(burn.float64, (2,)), (1,)) == (
        "add", "dtype", "float32[n]", "float64[n]",
    )  # fmt: skip


def test_numbers_of_another_dtype():
    from burn_fusion.churn import difference
    from burn_ir import CATALOG

    full, add = CATALOG["full"].code, CATALOG["add"].code
    outside = ((burn.float32, (2,)),)
    one, other = (
        (((full, dtype, ()), (add, -1, 0)), outside) for dtype in (burn.float32, burn.float64)
    )
    assert difference(one, (1,), other, (1,)) == (
        "add", "dtype", "a number of float32", "a number of float64",
    )  # fmt: skip
    number = (full, burn.float32, ())
    found = difference(((number,) * 2, ()), (1,), ((number,) * 3, ()), (1,))
    assert found == ("full", "op", "0 numbers at the end", "1")


def test_loops_that_settle_say_nothing(device):
    x = burn.ones(8, 4, device=device)
    model = burn.nn.Linear(4, 4, device=device.autodiff())
    optimizer = burn.optim.Adam(lr=0.1)

    def step(k: int) -> None:
        rows = x[: 1 + k % 7]
        loss = (model(rows) * (k + 1)).square().mean()
        optimizer.step(model, loss.backward(), lr=0.1 / (k + 1))
        if k % 5 == 0:
            loss.item()

    assert not _said(step, 80)


def test_programs_that_have_nothing_in_common_say_nothing(device):
    x = burn.ones(8, 4, device=device)
    names = ("exp", "log", "sqrt", "abs", "neg", "sin", "cos", "tanh", "sigmoid", "relu", "erf")
    pairs = [pair * 4 for pair in itertools.permutations(names, 2)]

    def step(k: int) -> None:
        y = x
        for name in pairs[3 * k]:
            y = getattr(y, name)()
        y.tolist()

    assert not _said(step, 30)


def test_a_line_says_it_once(device):
    step = _attribute(device)
    assert len(_said(step)) == 1
    assert not _said(lambda k: step(k + 40), 36)


def test_as_an_error_it_loses_nothing(device):
    step = _attribute(device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PlanChurnWarning):
            for k in range(40):
                step(k)
    x = burn.ones(3, device=device)
    assert (x + 1).tolist() == [2.0, 2.0, 2.0]


def test_a_plan_whose_inputs_share_memory_now_and_then():
    device = burn.device("cpu")
    x, y = burn.ones(64, device=device), burn.ones(64, device=device)
    device.flush()

    def step(k: int) -> None:
        first, second, third = (x, x, y) if k % 3 == 0 else (x, y, y) if k % 3 == 1 else (x, y, x)
        a, b, c = first[:], second[:], third[:]
        device.flush()
        ((a + b).exp() * c).sum().item()

    found = _one(step, 60)
    assert isinstance(found.message, ReplayWarning)
    assert "share memory" in found.message.why
    assert found.filename == __file__


def test_parts_that_begin_elsewhere_in_every_run():
    device = burn.device("fusion-cpu")
    x = burn.rand(200, 4, device=device)
    device.flush()

    def program(part):
        device.flush()
        return (part * 2 + 1).sum().item()

    found = _one(lambda k: program(x[k : k + 8]), 90)
    assert isinstance(found.message, ReplayWarning)
    assert "begin elsewhere" in found.message.why
    # Ever other lengths are nothing that a program could help, and these begin their memory.
    assert not _said(lambda k: (x[: k + 1] * 3 - 1).sum().item(), 90)
    assert not _said(lambda k: program(x[k : k + 8] * 1), 90)


def test_inputs_that_share_memory_alike_in_every_run_become_one_call():
    device = burn.device("cpu")
    x = burn.ones(8, 8, device=device)
    device.flush()

    def step(k: int) -> None:
        y = x * 2
        z = y.T
        device.flush()
        assert (y.exp() + z).sum().item() == pytest.approx(64 * 7.389056 + 128, rel=1e-5)

    assert not _said(step, 20)
