"""The module promises what it holds, and activations check what has no meaning."""

from __future__ import annotations

import inspect
import pickle

import pytest

import burn_tensor as burn
from burn_std import ArgumentError, BroadcastWarning, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import float32
from burn_tensor import fft, functional as F, linalg


@pytest.mark.parametrize("module", [F, linalg, fft], ids=lambda m: m.__name__)
def test_names_are_sorted_and_documented(module: object) -> None:
    names = module.__all__
    assert list(names) == sorted(names)
    for name in names:
        doc = inspect.getdoc(getattr(module, name)) or ""
        if inspect.isfunction(getattr(module, name)):
            for part in ("Args:", "Shapes:", "DTypes:", "Gradient:", "Example:"):
                assert part in doc, f"{name} lacks {part}"


def test_arguments_without_a_meaning_are_refused() -> None:
    x = burn.ones(3)
    for call, error in (
        (lambda: F.hardtanh(x, 1.0, -1.0), ArgumentError),
        (lambda: F.celu(x, 0.0), ArgumentError),
        (lambda: F.gelu(x, "erf"), ArgumentError),
        (lambda: F.softshrink(x, -1.0), ArgumentError),
        (lambda: F.rrelu(x, 0.5, 0.25), ArgumentError),
        (lambda: F.gumbel_softmax(x, 0.0), ArgumentError),
        (lambda: F.glu(x), ShapeError),
        (lambda: F.glu(burn.tensor(1.0)), ShapeError),
        (lambda: F.glu(x, 1), IndexRangeError),
        (lambda: F.softmax(x, 1), IndexRangeError),
        (lambda: F.log_softmax(x, -2), IndexRangeError),
        (lambda: F.softmax(burn.tensor([1]), 0), DTypeError),
        (lambda: F.prelu(burn.ones(2, 3), burn.ones(2)), ShapeError),
        (lambda: F.bilinear(x, x, burn.ones(1, 2, 3)), ShapeError),
        (lambda: F.silu(burn.tensor([1])), DTypeError),
    ):
        with pytest.raises(error):
            call()


def test_softmax_without_a_dim_follows_the_old_rule() -> None:
    for rank, dim in ((1, 0), (2, 1), (3, 0), (4, 1)):
        x = burn.arange(2**rank).reshape((2,) * rank).to(float32)
        assert F.softmax(x).tolist() == F.softmax(x, dim).tolist()
    assert F.softmax(burn.tensor(3.0)).item() == 1.0


def test_an_argument_that_could_have_no_effect_is_refused() -> None:
    x = burn.tensor([-1.0, 2.0])
    table, index = burn.ones(2, 2), burn.tensor([0])
    functions = [getattr(F, name) for name in F.__all__]
    takers = [f for f in functions if "inplace" in inspect.signature(f).parameters]
    assert len(takers) == 19
    for f in takers:
        given = {"threshold": 0.0, "value": 0.0} if f is F.threshold else {}
        with pytest.raises(ArgumentError) as caught:
            f(x, **given, inplace=True)
        assert caught.value.op == f.__name__
    for call in (
        lambda: F.softmax(x, 0, 5),
        lambda: F.log_softmax(x, 0, 5),
        lambda: F.softmin(x, 0, 5),
        lambda: F.gumbel_softmax(x, eps=1e-5),
        lambda: F.embedding(index, table, sparse=True),
        lambda: F.embedding_bag(index, table, index, sparse=True),
        lambda: table.cdist(table, compute_mode="fast"),
        lambda: x.repeat_interleave(2, output_size=5),
        lambda: x.repeat_interleave(burn.tensor([1, 3]), output_size=5),
    ):
        with pytest.raises((ArgumentError, ShapeError)):
            call()
    assert x.repeat_interleave(2, output_size=4).shape == (4,)
    assert x.repeat_interleave(burn.tensor([1, 3]), output_size=4).shape == (4,)
    assert x.tolist() == [-1.0, 2.0]


@pytest.mark.parametrize(
    "name",
    [
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss",
        "hinge_embedding_loss", "soft_margin_loss",
    ],
)  # fmt: skip
def test_a_loss_that_broadcasts_warns_in_the_line_of_its_caller(name: str) -> None:
    loss = getattr(F, name)
    column, row = burn.ones(3, 1), burn.ones(3)
    with pytest.warns(BroadcastWarning) as caught:
        out = loss(column, row, reduction="none")
    assert out.shape == (3, 3)
    assert caught[0].message.shapes == ((3, 1), (3,)) and caught[0].message.op == name
    assert caught[0].filename == __file__
    assert loss(row, row, reduction="none").shape == (3,)
    with pytest.raises(ShapeError):
        loss(burn.ones(2), row)
    again = pickle.loads(pickle.dumps(caught[0].message))
    assert again.shapes == ((3, 1), (3,))


def test_quiet_softmax_is_softmax_with_one_more_entry() -> None:
    x = burn.tensor([[1.0, -2.0, 300.0], [-300.0, -400.0, -300.0]])
    more = burn.cat([x, burn.zeros(2, 1)], 1)
    assert F.quiet_softmax(x, 1).tolist() == F.softmax(more, 1)[:, :3].tolist()
    assert F.quiet_softmax(x.T, 0).tolist() == F.quiet_softmax(x, -1).T.tolist()
    assert F.quiet_softmax(burn.tensor(0.0), 0).item() == 0.5
    assert F.quiet_softmax(burn.zeros(2, 0), 1).shape == (2, 0)
    assert F.quiet_softmax(burn.tensor([1, 2]), 0, dtype=float32).dtype is float32
    with pytest.raises(DTypeError):
        F.quiet_softmax(burn.tensor([1]), 0)
    with pytest.raises(IndexRangeError):
        F.quiet_softmax(x, 2)


def test_pdist_answers_as_pytorch_does() -> None:
    rows = [[0.0, 0.0], [3.0, 4.0], [1.0, 1.0], [1.0, 1.0]]
    expected = {
        0: ([2, 2, 2, 2, 2, 0], [[0, 0]] * 4),
        1: ([7, 2, 2, 5, 5, 0], [[-6, -6], [10, 10], [-2, -2], [-2, -2]]),
        2: (
            [5, 1.414213562, 1.414213562, 3.605551275, 3.605551275, 0],
            [
                [-4.135533906, -4.335533906], [5.592301766, 8.288452649],
                [-0.804587223, -1.913987615], [-0.652180638, -2.038931128],
            ],
        ),
        3.5: (
            [4.37221529, 1.219013654, 1.219013654, 3.191579283, 3.191579283, 0],
            [
                [-3.437520381, -3.848098274], [3.18770082, 8.510158937],
                [-0.024415046, -2.207472923], [0.274234606, -2.45458774],
            ],
        ),
        float("inf"): ([4, 1, 1, 3, 3, 0], None),
    }  # fmt: skip
    device = burn.tensor(0.0).device.autodiff()
    weights = burn.arange(1, 7).to(float32)
    for p, (values, slopes) in expected.items():
        x = burn.tensor(rows, device=device).require_grad()
        out = F.pdist(x, p)
        assert out.tolist() == pytest.approx(values, rel=1e-5)
        grad = x.grad((out * weights).sum().backward())
        if slopes is not None:
            flat = [slope for row in slopes for slope in row]
            assert grad.ravel().tolist() == pytest.approx(flat, rel=1e-5, abs=1e-6)
    assert F.pdist(burn.ones(1, 2)).shape == (0,) and F.pdist(burn.ones(0, 2)).shape == (0,)
    for call, error in (
        (lambda: F.pdist(burn.ones(2)), ShapeError),
        (lambda: F.pdist(burn.ones(2, 2), -1), ArgumentError),
        (lambda: F.pdist(burn.tensor([[1]])), DTypeError),
    ):
        with pytest.raises(error):
            call()
