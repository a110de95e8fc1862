"""Layers beside PyTorch's answers: lazy ones, deformed ones, containers, losses, configs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_core import Lora, ModuleConfig, apply_lora, merge_lora
from burn_dispatch import Device
from burn_std import ArgumentError, IndexRangeError, ShapeError
from burn_std.dtypes import float64


@pytest.fixture(autouse=True)
def _seed() -> None:
    bt.manual_seed(2)


def near(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    return bool((a.detach() - b.detach()).abs().max().item() < tolerance)


# ---- lazy -------------------------------------------------------------------------------------


def lazy_net(device: Device) -> Any:
    with device:
        return nn.Sequential(
            nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2)
        )


@pytest.mark.parametrize("first", ["call", "valid", "summary", "load"])
def test_lazy_layers_become_plain_however_they_are_first_used(first: str, tracking: Device) -> None:
    net = lazy_net(tracking)
    known = {id(p) for p in net.parameters()}
    assert "lazy" in repr(net)
    with pytest.raises(ShapeError, match="lazy"):
        net.num_params()
    x = bt.randn(3, 2, 5, 5, device=tracking)
    if first == "call":
        net(x)
    elif first == "valid":
        infer = net.valid()
        assert infer(x).shape == (3, 2)
        assert near(infer(x), net.valid()(x))
    elif first == "summary":
        assert net.summary(x).total == net.num_params()
    else:
        other = lazy_net(tracking)
        other(x)
        part = nn.Sequential(*[net[k] for k in (0, 2, 3)])
        state = {k: v for k, v in other.state_dict().items() if not k.startswith("1.")}
        part.load_state_dict({k.replace("3.", "2."): v for k, v in state.items()})
        net(x)
        assert near(net[0].weight, other[0].weight)
    assert [type(m).__name__ for m in net] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert {id(p) for p in net.parameters()} == known
    assert net[3].in_features == 36 and net[0].in_channels == 2
    assert net[1].running_mean.shape == (4,)
    grads = net(x).sum().backward()
    assert all(p.grad(grads) is not None for p in net.parameters())
    assert type(ModuleConfig.from_json(net.config().to_json()).init()[3]).__name__ == "LazyLinear"


class Listed(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 3)
        self.layers = [nn.Linear(3, 3), {"last": nn.Sequential(nn.Linear(3, 1))}]

    def forward(self, x: bt.Tensor) -> bt.Tensor:
        return self.layers[1]["last"](self.layers[0](self.first(x)))


def test_the_table_of_a_model_names_layers_with_the_list_that_holds_them() -> None:
    lines = str(Listed().summary((2, 2))).splitlines()
    assert [line.split("  [")[0].rstrip() for line in lines[2:-1]] == [
        "Listed",
        "  first: Linear",
        "  layers.0: Linear",
        "  layers.1.last: Sequential",
        "    0: Linear",
    ]


# ---- convolutions -----------------------------------------------------------------------------


def test_asymmetric_padding() -> None:
    layer = nn.Conv2d(1, 1, 2, padding=((0, 1), (2, 0)), bias=False)
    x = bt.randn(1, 1, 3, 3)
    padded = bt.functional.pad(x, [2, 0, 0, 1])
    assert near(layer(x), bt.functional.conv2d(padded, layer.weight))
    assert nn.Conv1d(1, 1, 2, padding=(1, 0))(bt.randn(1, 1, 3)).shape == (1, 1, 3)
    for wrong in ((1, 2, 3), ((1, 2),), "full"):
        with pytest.raises(ArgumentError):
            nn.Conv2d(1, 1, 2, padding=wrong)
    with pytest.raises(ArgumentError):
        nn.Conv2d(1, 1, 2, stride=2, padding="same")
    with pytest.raises(ArgumentError):
        nn.Conv2d(3, 4, 2, groups=2)


def test_transposed_convolution_is_the_adjoint() -> None:
    for stride, pad, dilation, groups in itertools.product((1, 2), (0, 1), (1, 2), (1, 2)):
        conv = nn.Conv1d(4, 6, 3, stride, pad, dilation, groups, bias=False, dtype=float64)
        back = nn.ConvTranspose1d(6, 4, 3, stride, pad, groups=groups, bias=False,
                                  dilation=dilation, dtype=float64)  # fmt: skip
        back.weight.set(conv.weight.detach())
        x = bt.randn(2, 4, 9, dtype=float64)
        y = bt.randn(*conv(x).shape, dtype=float64)
        one, two = (conv(x) * y).sum().item(), (x * back(y, output_size=[9])).sum().item()
        assert one == pytest.approx(two, abs=1e-10)
    with pytest.raises(ArgumentError):
        back(y, output_size=[20])


def test_deformable_convolution_without_offsets_is_the_plain_one(tracking: Device) -> None:
    plain = nn.Conv2d(4, 6, 3, 2, 1, 1, 2, dtype=float64, device=tracking)
    layer = nn.DeformConv2d(4, 6, 3, 2, 1, 1, 2, dtype=float64, device=tracking)
    layer.load_state_dict(plain.state_dict())
    x = bt.randn(2, 4, 7, 6, dtype=float64)
    offset = bt.zeros(2, 36, 4, 3, dtype=float64, device=tracking).require_grad()
    y = layer(x, offset)
    assert near(y, plain(x), 1e-12)
    assert near(
        layer(x, offset, bt.full((2, 18, 4, 3), 0.5, dtype=float64)) * 2
        - layer.bias.reshape(1, 6, 1, 1),
        y,
        1e-12,
    )
    shifted = bt.zeros(2, 36, 4, 3, dtype=float64).reshape(2, 18, 2, 4, 3)
    shifted[:, :, 1] = 1.0
    moved = layer(x, shifted.reshape(2, 36, 4, 3))
    # Points one pixel to the right are points of an image one pixel to the left.
    left = bt.functional.pad(x, [0, 1])[..., 1:]
    assert near(moved[..., 1:], plain(left)[..., 1:], 1e-12)
    assert offset.grad(y.sum().backward()).shape == offset.shape
    with pytest.raises(ShapeError):
        layer(x, offset[:, :10])


# ---- containers -------------------------------------------------------------------------------


def test_containers_hold_what_they_are_given() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers.insert(0, nn.Identity())
    assert [type(m).__name__ for m in layers] == ["Identity", "Linear", "ReLU", "Tanh"]
    assert list(layers.state_dict()) == ["1.weight", "1.bias"]
    assert type(layers.pop()).__name__ == "Tanh" and len(layers[1:]) == 2
    del layers[0]
    layers[1] = nn.GELU()
    assert list(layers.state_dict()) == ["0.weight", "0.bias"]
    with pytest.raises(IndexRangeError):
        layers[5]
    with pytest.raises(ArgumentError):
        layers.append(3)
    heads = nn.ModuleDict({"a": nn.Linear(1, 1)})
    heads["b"] = nn.ReLU()
    assert list(heads) == ["a", "b"] and "a" in heads and len(heads) == 2
    with pytest.raises(ArgumentError):
        heads["x.y"] = nn.ReLU()
    params = nn.ParameterList([bt.ones(2)])
    params.append(bt.ones(3))
    assert params.num_params() == 5
    assert nn.ParameterDict({"a": bt.ones(2)})["a"].requires_grad
    model = nn.Sequential({"first": nn.Linear(1, 2), "second": nn.ReLU()})
    model.append(nn.Linear(2, 1))
    assert sorted(model.state_dict())[0] == "2.bias"
    assert model[-1](model[0](bt.ones(1, 1))).shape == (1, 1)
    for made in (layers, heads, model):
        again = ModuleConfig.from_json(made.config().to_json()).init()
        assert type(again) is type(made)


def test_lora_on_layers_of_this_package(tracking: Device) -> None:
    with tracking:
        model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        x = bt.randn(1, 3, 8)
    before = model(x)
    apply_lora(model.freeze(), Lora(2, select="*proj*weight"))
    for path, p in model.select("*.lora_b"):
        assert path.startswith("self_attn")
        p.set(bt.randn(*p.shape) * 0.1)
    after = model(x)
    assert not near(before, after)
    merge_lora(model)
    assert near(model(x), after) and near(model.valid()(x), after)


# ---- losses -----------------------------------------------------------------------------------


def brute_rnnt(logs: Any, target: list[int], blank: int) -> float:
    """Sum over all alignments of one sample, by recursion."""
    steps = len(logs)

    def walk(t: int, u: int) -> float:
        if t == steps:
            return 0.0
        total = 0.0
        if t == steps - 1 and u == len(target):
            return math.exp(logs[t][u][blank])
        if t < steps - 1:
            total += math.exp(logs[t][u][blank]) * walk(t + 1, u)
        if u < len(target):
            total += math.exp(logs[t][u][target[u]]) * walk(t, u + 1)
        return total

    return -math.log(walk(0, 0))


def test_transducer_loss_sums_all_alignments(tracking: Device) -> None:
    x = bt.randn(3, 4, 4, 5, device=tracking).require_grad()
    targets = bt.tensor([[1, 2, 3], [4, 1, 0], [2, 0, 0]])
    times, lengths = bt.tensor([4, 3, 1]), bt.tensor([3, 2, 0])
    losses = nn.RNNTLoss(reduction="none")(x, targets, times, lengths)
    logs = x.log_softmax(-1)
    for k in range(3):
        t, u = times[k].item(), lengths[k].item()
        want = brute_rnnt(logs[k, :t].tolist(), targets[k, :u].tolist(), 0)
        assert losses[k].item() == pytest.approx(want, rel=1e-5)
    slope = x.grad(losses.sum().backward())
    assert slope.isfinite().all().item()
    assert slope[2, 1:].abs().sum().item() == 0.0
    assert near(slope.sum(-1), bt.zeros(3, 4, 4))
    with pytest.raises(ShapeError):
        nn.RNNTLoss()(x, targets[:, :2], times, lengths)
    with pytest.raises(ArgumentError):
        nn.RNNTLoss(blank=9)(x, targets, times, lengths)


def test_focal_loss_is_weighted_cross_entropy(tracking: Device) -> None:
    x = bt.randn(6, 3, device=tracking).require_grad()
    classes = bt.tensor([0, 1, 2, 0, 1, 2])
    plain = nn.CrossEntropyLoss()(x, classes)
    assert near(nn.FocalLoss(gamma=0.0)(x, classes), plain)
    known = x.softmax(-1).gather(1, classes.unsqueeze(1)).squeeze(1)
    want = (-known.log() * (1 - known) ** 2).mean()
    loss = nn.FocalLoss(gamma=2.0)(x, classes)
    assert near(loss, want)
    assert x.grad(loss.backward()).isfinite().all().item()
    marks = (bt.randn(6, 3) > 0).float()
    p = x.sigmoid()
    chosen = bt.where(marks == 1, p, 1 - p)
    alpha = bt.where(marks == 1, 0.25, 0.75)
    want = -(alpha * (1 - chosen) ** 2 * chosen.log()).sum()
    assert near(nn.FocalLoss(reduction="sum")(x, marks), want, 1e-4)
    with pytest.raises(ArgumentError):
        nn.FocalLoss(reduction="avg")(x, marks)


def test_dice_contrastive_and_powers() -> None:
    p, t = bt.tensor([[[0.5, 0.5]]]), bt.tensor([[[1.0, 0.0]]])
    assert nn.DiceLoss(smooth=0.0)(p, t).item() == pytest.approx(0.5)
    assert nn.DiceLoss()(p * 0, t * 0).item() == 0.0
    assert nn.DiceLoss(from_logits=True, smooth=0.0)(p * 0, t).item() == pytest.approx(0.5)
    with pytest.raises(ShapeError):
        nn.DiceLoss()(p, t[0])
    a, b = bt.zeros(2, 1), bt.tensor([[2.0], [0.5]])
    loss = nn.ContrastiveLoss(reduction="none")(a, b, bt.tensor([1.0, 0.0]))
    assert loss.tolist() == pytest.approx([2.0, 0.125], abs=1e-4)
    assert nn.LpLoss(1.5)(a, b).item() == pytest.approx((2**1.5 + 0.5**1.5) / 2)
    with pytest.raises(ArgumentError):
        nn.LpLoss(0.0)


def test_soft_targets_and_classes_agree() -> None:
    x, classes = bt.randn(4, 3), bt.tensor([0, 2, 1, 1])
    soft = bt.functional.one_hot(classes, 3).float()
    for smoothing in (0.0, 0.1):
        loss = nn.CrossEntropyLoss(label_smoothing=smoothing)
        assert near(loss(x, classes), loss(x, soft))


def test_padding_row_stays_zero_and_gets_no_gradient(tracking: Device) -> None:
    table = nn.Embedding(4, 2, padding_idx=-1, device=tracking)
    assert table.padding_idx == 3 and table.weight[3].tolist() == [0.0, 0.0]
    out = table(bt.tensor([3, 1, 1]))
    slope = table.weight.grad(out.sum().backward())
    assert slope.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ArgumentError):
        nn.Embedding(4, 2, padding_idx=4)
    frozen = nn.Embedding.from_pretrained(bt.ones(2, 3))
    assert not frozen.weight.requires_grad
    scaled = nn.Embedding(4, 2, max_norm=1.0)
    scaled.weight.set(bt.full((4, 2), 3.0))
    scaled(bt.tensor([1]))
    assert scaled.weight.tolist()[0] == [3.0, 3.0]
    assert scaled.weight[1].norm().item() == pytest.approx(1.0, abs=1e-5)


def test_activations_of_burn() -> None:
    x = bt.tensor([-2.0, -0.3, 0.3, 2.0])
    assert near(nn.Shrink(0.5, 0.25)(x), bt.tensor([-1.75, 0.0, 0.0, 1.75]))
    assert nn.ThresholdedReLU(1.0)(x).tolist() == [0.0, 0.0, 0.0, 2.0]
    gated = nn.SwiGLU(3, 2, bias=True)
    y = bt.randn(4, 3)
    inner, outer = gated.linear_inner(y), gated.linear_outer(y)
    assert near(gated(y), inner * inner.sigmoid() * outer)


def test_lazy_instance_norms_become_plain_ones(tracking: Device) -> None:
    for n in (1, 2, 3):
        shape = (2, 3, *[4] * n)
        layer = getattr(nn, f"LazyInstanceNorm{n}d")(device=tracking)
        x = bt.randn(*shape, device=tracking)
        out = layer(x)
        assert type(layer).__name__ == f"InstanceNorm{n}d" and layer.num_features == 3
        plain = getattr(nn, f"InstanceNorm{n}d")(3, affine=True, track_running_stats=True)
        assert sorted(plain.state_dict()) == sorted(layer.state_dict())
        assert out.tolist() == plain.to_device(tracking)(x).tolist()
        single = getattr(nn, f"LazyInstanceNorm{n}d")(affine=False, track_running_stats=False)
        assert single(x[0]).shape == shape[1:] and single.num_features == 3


def test_a_name_of_pytorch_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"burn\.functional|from burn import functional"):
        nn.functional  # noqa: B018
    with pytest.raises(AttributeError, match=r"nn\.rnn"):
        nn.utils  # noqa: B018
    with pytest.raises(AttributeError, match=r"Did you mean burn\.nn\.Linear"):
        nn.Lienar  # noqa: B018


def test_norms_without_bias_shift_nothing(tracking: Device) -> None:
    x = bt.randn(4, 6, 5, device=tracking)
    makers: list[Any] = [
        lambda **kw: nn.BatchNorm1d(6, device=tracking, **kw),
        lambda **kw: nn.InstanceNorm1d(6, affine=True, device=tracking, **kw),
        lambda **kw: nn.GroupNorm(2, 6, device=tracking, **kw),
        lambda **kw: nn.LazyBatchNorm1d(device=tracking, **kw),
        lambda **kw: nn.LazyInstanceNorm1d(device=tracking, **kw),
    ]
    for make in makers:
        whole, plain = make(), make(bias=False)
        # Weight 1 and bias 0 are where both begin.
        assert plain(x).tolist() == whole(x).tolist()
        assert set(whole.state_dict()) - set(plain.state_dict()) == {"bias"}
        assert plain.config().to_dict() != whole.config().to_dict()
