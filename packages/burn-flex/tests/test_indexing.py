import ml_dtypes
import numpy as np
import pytest

from burn_std import IndexRangeError, dtypes as d

BF16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype(np.float16), BF16]
nan, inf = float("nan"), float("inf")


def test_gather_takes_a_smaller_index(call, same):
    x = np.arange(12).reshape(3, 4)
    index = np.array([[3, 0], [1, 1]])
    same(call("gather", x, index, 1), np.array([[3, 0], [5, 5]]))
    same(call("gather", x.T, index.T, 0), np.array([[3, 0], [5, 5]]).T)
    same(call("gather", x, index % 3, 0), np.array([[0, 1], [4, 5]]))
    same(call("gather", x, np.zeros((0, 2), np.uint8), 0), np.zeros((0, 2), np.int64))
    same(call("gather", np.array(5), np.array([0, 0]), 0), np.array([5, 5]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_indices_of_any_integer_dtype(call, same, dtype):
    x = np.array([10.0, 11, 12])
    index = np.array([2, 0], dtype)
    same(call("gather", x, index, 0), np.array([12.0, 10]))
    same(call("index_select", x, index, 0), np.array([12.0, 10]))
    same(call("index", x, [index], (0,)), np.array([12.0, 10]))
    same(call("index_put", x, np.array(0.0), [index], (0,), False), np.array([0, 11.0, 0]))
    same(call("scatter", x, index, x[:2], 0, "add"), np.array([21.0, 11, 22]))


CASES = {
    "gather": lambda i: (np.zeros((2, 3)), np.array([[i]]), 1),
    "scatter": lambda i: (np.zeros((2, 3)), np.array([[i]]), np.zeros((1, 1)), 1, "assign"),
    "index_select": lambda i: (np.zeros((2, 3)), np.array([0, i]), 1),
    "index_add": lambda i: (np.zeros((2, 3)), np.array([i]), np.zeros((2, 1)), 1, 1),
    "embedding": lambda i: (np.zeros((3, 2)), np.array([i]), None),
    "one_hot": lambda i: (np.array([0, i]), 3),
    "bincount": lambda i: (np.array([0, i]), None, 3),
}


@pytest.mark.parametrize("bad", [3, -1, 2**62])
@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_names_its_facts(call, name, bad):
    with pytest.raises(IndexRangeError) as caught:
        call(name, *CASES[name](bad))
    assert caught.value.op == name and f"index {bad} for size 3" in str(caught.value)
    assert "dim" in caught.value.rule


@pytest.mark.parametrize("bad", [3, -4])
def test_index_counts_from_the_end_but_not_further(call, same, bad):
    x = np.arange(6).reshape(2, 3)
    same(call("index", x, [np.array([-1, 0])], (1,)), x[:, [-1, 0]])
    same(call("index_put", x, np.array(9), [np.array([-1])], (1,), False)[:, 2], np.array([9, 9]))
    with pytest.raises(IndexRangeError, match=f"dim 1.*index {bad} for size 3"):
        call("index", x, [np.array([bad])], (1,))
    with pytest.raises(IndexRangeError, match=f"dim 1.*index {bad} for size 3"):
        call("index_put", x, np.array(9), [np.array([bad])], (1,), True)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_index_and_index_put_follow_numpy(call, same, dims):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, (3, 4, 5))
    shapes = [(2, 1), (1, 3), (2, 3)]
    indices = [rng.integers(-x.shape[k], x.shape[k], shapes[i]) for i, k in enumerate(dims)]
    key = [slice(None)] * 3
    for k, i in zip(dims, indices, strict=True):
        key[k] = i
    key = tuple(key)
    same(call("index", x, indices, dims), x[key])
    value = rng.integers(0, 9, x[key].shape)
    want = x.copy()
    np.add.at(want, key, value)
    same(call("index_put", x, value, indices, dims, True), want)
    want = x.copy()
    want[key] = 7
    same(call("index_put", x, np.array(7), indices, dims, False), want)


def test_the_last_of_several_assignments_wins(call, same):
    x = np.zeros((2, 3))
    index = np.asfortranarray(np.array([[0, 0, 0], [1, 1, 1]]).T)
    src = np.arange(6.0).reshape(3, 2)
    same(call("scatter", x.T.copy(), index, src, 0, "assign")[:2], np.array([[4.0, 0], [0, 5]]))
    backwards = np.array([1, 1, 0, 1])[::-1]
    got = call("index_put", np.zeros(2), np.arange(4.0), [backwards], (0,), False)
    same(got, np.array([1.0, 3.0]))


def test_scatter_modes_count_duplicates(call, same):
    x, index = np.array([1.0, 2.0]), np.array([0, 0, 1, 1])
    src = np.array([3.0, 4.0, -5.0, nan])
    same(call("scatter", x, index, src, 0, "add"), np.array([8, nan]))
    same(call("scatter", x, index, src, 0, "multiply"), np.array([12, nan]))
    same(call("scatter", x, index, src, 0, "amax"), np.array([4, nan]))
    same(call("scatter", x, index[:3], src, 0, "amin"), np.array([1.0, -5]))
    bools = np.array([False, True])
    same(call("scatter", bools, np.array([0, 1]), bools[::-1], 0, "add"), np.array([True, True]))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_add_in_f32(call, same, dtype):
    x = np.array([2048.0, 0], dtype)
    index, src = np.zeros(64, np.int64), np.ones(64, dtype)
    want = np.array([2112, 0], dtype)
    same(call("scatter", x, index, src, 0, "add"), want)
    same(call("index_add", x, index, src, 0, 1.0), want)
    same(call("index_put", x, src, [index], (0,), True), want)


@pytest.mark.parametrize("rows", [3, 400])
def test_embedding_backward_adds_all_rows(call, rows):
    rng = np.random.default_rng(2)
    index = rng.integers(0, rows, (700,)) ** 2 % rows
    g = rng.standard_normal((700, 16))
    want = np.zeros((rows, 16))
    np.add.at(want, index, g)
    assert np.allclose(call("embedding_backward", g, index.reshape(7, 100), None, rows), want)
    want[2] = 0
    assert np.allclose(call("embedding_backward", g, index, 2, rows), want)


def test_index_add_scales_and_wraps(call, same):
    x = np.array([[1, 2, 3]], np.uint8)
    src = np.array([[2, 2]], np.uint8)
    same(call("index_add", x, np.array([0, 0]), src, 1, -1), np.array([[253, 2, 3]], np.uint8))
    same(call("index_add", np.array(1.0), np.array(0), np.array(2.0), 0, 0.5), np.array(2.0))


def test_dynamic_sizes(call, same):
    x = np.array([[0, 1], [2, 0]])
    same(call("nonzero", x), np.array([[0, 1], [1, 0]]))
    same(call("nonzero", np.array(3)), np.zeros((1, 0), np.int64))
    same(call("masked_select", x.T, x.T > 0), np.array([2, 1]))
    same(call("one_hot", np.array([[1], [0]]), 2), np.array([[[0, 1]], [[1, 0]]]))
    weights = np.array([0.5, 0.25], np.float32)
    same(
        call("bincount", np.array([1, 1], np.uint8), weights, 3), np.array([0, 0.75, 0], np.float32)
    )


def test_views_share_memory(call):
    x = np.arange(24.0).reshape(2, 3, 4)
    for name, *args in (
        ("reshape", (6, 4)), ("permute", (2, 0, 1)), ("expand", (5, 2, 3, 4)),
        ("unsqueeze", (0, 3)),
        ("slice", (1, -1, 2), (0, 2, 0), (2, -1, 4)), ("flip", (1,)), ("diagonal", 0, 1, 0),
        ("unfold_dim", 2, 2, 1), ("contiguous",),
    ):  # fmt: skip
        assert np.shares_memory(x, call(name, x, *args)), name


def test_views_show_the_right_elements(call, same):
    x = np.arange(12).reshape(3, 4)
    same(call("slice", x, (-2, 1), (2, 1), (-1, 3)), x[::-2, 1:3])
    same(call("slice", np.array(4), (), (), ()), np.array(4))
    same(call("flip", x, (0, 1)), x[::-1, ::-1])
    same(call("unsqueeze", x.T, (0, 2)), x.T[None, :, None])
    same(call("squeeze", x[None, :, None], (0, 2)), x)
    same(call("expand", x[:, None], (2, 3, 5, 4)), np.broadcast_to(x[:, None], (2, 3, 5, 4)))
    same(call("expand", x[:0], (7, 0, 4)), np.zeros((7, 0, 4), int))
    same(call("diagonal", x, 0, 1, 1), np.array([1, 6, 11]))
    same(call("unfold_dim", x, 1, 2, 2), x.reshape(3, 2, 2))
    same(call("contiguous", x.T), x.T.copy())


def test_adjoints_of_views(call, same):
    base = np.zeros(6)
    same(
        call("slice_assign", base, np.array([1.0, 2, 3]), (-2,), (5,), (-1,)),
        np.array([0, 3, 0, 2, 0, 1.0]),
    )
    same(
        call("slice_backward", np.array([1.0, 2]), (2,), (1,), (4,), (5,)),
        np.array([0, 1.0, 0, 2, 0]),
    )
    same(
        call("diagonal_backward", np.array([5, 6]), 0, 1, (2, 3), 1),
        np.array([[0, 5, 0], [0, 0, 6]]),
    )
    for size, step, n in ((2, 1, 5), (4, 3, 7), (3, 3, 9), (1, 2, 5)):
        x = np.arange(float(2 * n)).reshape(2, n)
        g = np.random.default_rng(3).standard_normal(call("unfold_dim", x, 1, size, step).shape)
        back = call("unfold_dim_backward", g, 1, size, step, (2, n))
        assert np.isclose((back * x).sum(), (g * call("unfold_dim", x, 1, size, step)).sum())


PADS = [((0, 0), (2, 1)), ((1, 0), (-1, 2)), ((0, -1), (3, -2)), ((-1, -1), (-1, 0))]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad_and_its_adjoint(call, mode, pads):
    x = np.arange(20.0).reshape(4, 5) + 1
    out = call("pad", x, mode, pads, 0.0)
    assert out.shape == tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True))
    if all(a >= 0 and b >= 0 for a, b in pads):
        name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
        assert np.array_equal(out, np.pad(x, pads, name))
    g = np.random.default_rng(4).standard_normal(out.shape)
    back = call("pad_backward", g, mode, pads)
    assert back.shape == x.shape and np.isclose((back * x).sum(), (g * out).sum())


def test_joins_and_creation(call, same):
    x = np.arange(4).reshape(2, 2)
    same(call("cat", [x, x[:, :0]], 1), x)
    same(call("roll", x, (1,), (1,)), x[:, ::-1])
    same(call("repeat", x, (2, 1, 2)), np.tile(x, (2, 1, 2)))
    same(call("tril", x, -1), np.tril(x, -1))
    same(call("triu", np.ones((2, 2, 3), BF16), 1), np.triu(np.ones((2, 2, 3)), 1).astype(BF16))
    same(call("full", d.bfloat16, (2,), 1.5), np.array([1.5, 1.5], BF16))
    assert np.signbit(call("full", d.float32, (1,), -0.0)).all()
    same(call("full", d.bool_, (1,), True), np.array([True]))


def test_arange_is_exact(call, same):
    same(call("arange", d.int64, 3, 16777216, 1), np.array([16777216, 16777217, 16777218]))
    same(call("arange", d.float64, 2, 16777217, 1), np.array([16777217.0, 16777218.0]))
    same(call("arange", d.int8, 3, 2, -2), np.array([2, 0, -2], np.int8))
    same(call("arange", d.uint64, 2, 2**63, 1), np.array([2**63, 2**63 + 1], np.uint64))
    same(call("arange", d.float32, 3, 0.0, 0.1), np.array([0, 0.1, 0.2]).astype(np.float32))
    same(call("arange", d.int64, 0, 0, 1), np.zeros(0, np.int64))
