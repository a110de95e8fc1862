from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
from typing import Any

import pytest

import burn_tensor as bt
from burn_core import (
    Buffer,
    Module,
    Parameter,
    call_in_turn,
    is_training,
    updates_statistics,
)
from burn_dispatch import Device, no_grad
from burn_std import ArgumentError, BurnError, DTypeError, ShapeError, StoreError
from burn_std.dtypes import bfloat16, float32, float64, int64


class Scale(Module):
    """Multiply; remember whether it trained; count the calls that trained."""

    def __init__(self, size: int = 2, device: Device | None = None) -> None:
        self.factor = Parameter(bt.full((size,), 2.0, device=device))
        self.calls = Buffer(bt.zeros((), device=device))
        self.trained: list[bool] = []

    def forward(self, x: Any) -> Any:
        self.trained.append(is_training())
        if updates_statistics():
            self.calls.set(self.calls + 1)
        return x * self.factor


class Nest(Module):
    """Modules and parameters in every kind of container."""

    def __init__(self, device: Device | None = None) -> None:
        self.first = Scale(device=device)
        self.rest = [Scale(device=device), {"a": Scale(device=device)}]
        self.pair = (Parameter(bt.ones(1, device=device)), "text")
        self.table = bt.arange(3, device=device)
        self.name = "nest"

    def forward(self, x: Any) -> Any:
        for layer in (self.first, self.rest[0], self.rest[1]["a"]):  # type: ignore[index]
            x = layer(x)
        return x


class Tied(Module):
    """One parameter in two places."""

    def __init__(self, device: Device | None = None) -> None:
        self.embed = Parameter(bt.ones(3, 2, device=device))
        self.head = Scale(3, device=device)
        self.head.__dict__["factor"] = self.embed

    def forward(self, x: Any) -> Any:
        return x @ self.embed.T


# ---- the tree ---------------------------------------------------------------------------------


def test_leaves_are_found_in_every_container(device: Device) -> None:
    model = Nest(device)
    assert [n for n, _ in model.named_parameters()] == [
        "first.factor", "rest.0.factor", "rest.1.a.factor", "pair.0",
    ]  # fmt: skip
    assert [n for n, _ in model.named_modules()] == ["", "first", "rest.0", "rest.1.a"]
    assert [n for n, _ in model.named_buffers()] == [
        "first.calls", "rest.0.calls", "rest.1.a.calls",
    ]  # fmt: skip
    assert [n for n, _ in model.named_children()] == ["first"]
    assert model.num_params() == 7
    assert model.get_submodule("rest.1.a") is model.rest[1]["a"]  # type: ignore[index]
    assert model.get_parameter("pair.0").shape == (1,)
    with pytest.raises(ArgumentError):
        model.get_submodule("nowhere")


def test_tied_parameters_count_and_are_saved_once(device: Device) -> None:
    model = Tied(device)
    assert model.num_params() == 6
    assert list(model.state_dict()) == ["embed", "head.calls"]
    fork = model.fork()
    assert fork.head.factor is fork.embed
    assert fork.embed is not model.embed
    infer = model.valid()
    assert infer.head.factor is infer.embed
    # A checkpoint that names the other place loads too.
    keys = model.load_state_dict({"head.factor": bt.zeros(3, 2), "head.calls": bt.zeros(())})
    assert keys == ([], [])
    assert model.embed.tolist() == [[0.0, 0.0]] * 3


def test_a_module_that_holds_itself_ends(device: Device) -> None:
    model = Scale(device=device)
    model.me = model  # type: ignore[attr-defined]
    assert [n for n, _ in model.named_parameters()] == ["factor"]
    assert model.fork().me is not model
    assert "same as" in repr(model)


def test_printed_tree_shows_shapes_and_counts(tracking: Device) -> None:
    model = Nest(tracking).freeze("first")
    text = repr(model)
    assert "first: Scale(" in text
    assert "factor: Parameter f32[2], frozen" in text
    assert "table: Tensor i64[3]" in text
    assert text.splitlines()[-1] == "# 7 parameters (2 frozen)"


def test_assigning_a_plain_tensor_over_a_parameter_raises(device: Device) -> None:
    model = Scale(device=device)
    with pytest.raises(DTypeError, match="set"):
        model.factor = bt.ones(2)  # type: ignore[assignment]
    model.factor = Parameter(bt.ones(2))
    assert model.factor.tolist() == [1.0, 1.0]


def test_unknown_and_foreign_names_say_what_to_do(device: Device) -> None:
    model = Scale(device=device)
    with pytest.raises(BurnError, match="valid"):
        model.eval()
    with pytest.raises(AttributeError, match=r"nn\.Buffer"):
        model.register_buffer("x", None)
    assert not hasattr(model, "nothing")
    for name in ("register_buffer", "cuda"):
        assert not hasattr(Module, name)
        assert name not in dir(model)
        assert name not in dir(Module)
    assert "factor" in dir(model)
    model.device = "its own"
    assert model.device == "its own"


def test_python_finds_attributes_of_modules_the_short_way() -> None:
    assert not hasattr(Module, "__getattr__")
    assert Module.__getattribute__ is object.__getattribute__


# ---- training behaviour -----------------------------------------------------------------------


def test_training_is_decided_by_inputs_and_parameters(device: Device, tracking: Device) -> None:
    plain, model = Scale(device=device), Scale(device=tracking)
    x, tx = bt.ones(2, device=device), bt.ones(2, device=tracking)
    for m, given in ((plain, x), (plain, tx), (model, x), (model, tx)):
        m(given)
    assert plain.trained == [False, True]
    assert model.trained == [True, True]


def test_a_nested_input_of_autodiff_trains(device: Device, tracking: Device) -> None:
    seen = []

    class Pairs(Module):
        def forward(self, pairs: Any, more: Any = None) -> None:
            seen.append(is_training())

    Pairs()([(bt.ones(1, device=device), bt.ones(1, device=tracking))])
    Pairs()([], more={"h": bt.ones(1, device=tracking)})
    Pairs()([(bt.ones(1, device=device),)])
    assert seen == [True, True, False]


def test_no_grad_and_valid_switch_training_off(tracking: Device) -> None:
    model = Nest(tracking)
    x = bt.ones(2, device=tracking)
    with no_grad():
        model(x)
    assert model.first.trained == [False]
    infer = model.valid(grad=True)
    infer(x)
    # Plain attributes are shared, so the list is the model's.
    assert model.first.trained == [False, False]
    model(x)
    assert model.first.trained[-1] and model.rest[0].trained[-1]  # type: ignore[union-attr]
    assert not is_training()


def test_a_valid_module_inside_a_training_one_stays_inference(tracking: Device) -> None:
    model = Nest(tracking)
    model.first = model.first.valid(grad=True)
    model(bt.ones(2, device=tracking))
    assert model.first.trained == [False]
    assert model.rest[0].trained == [True]  # type: ignore[union-attr]


class Own(Scale):
    """Has a call of its own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) + 1


class Line(Module):
    """Calls what it holds in turn."""

    def __init__(self, *parts: Module) -> None:
        self.parts = parts

    def forward(self, x: Any) -> Any:
        return call_in_turn(self.parts, x)


def test_modules_called_in_turn_are_called_as_by_hand(tracking: Device) -> None:
    x = bt.ones(2, device=tracking)
    live, frozen, own = Scale(device=tracking), Scale(device=tracking).valid(), Own(device=tracking)
    line = Line(live, frozen, own)
    assert line(x).tolist() == [9.0, 9.0]  # 2, 2, and 2 with one more
    assert (live.trained, frozen.trained, own.trained) == ([True], [False], [True])
    assert line.valid()(x).tolist() == [9.0, 9.0]
    assert call_in_turn([live, own], x).tolist() == [5.0, 5.0]  # outside of any call
    assert live.trained == [True, False, True]
    assert call_in_turn([], x) is x


def test_a_call_takes_arguments_by_place_and_by_name(device: Device) -> None:
    class Given(Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return args, kwargs

    model = Given()
    assert model() == ((), {})
    assert model(1) == ((1,), {})
    assert model(None, 2) == ((None, 2), {})
    assert model(first=1, more=2, named=3) == ((), {"first": 1, "more": 2, "named": 3})
    assert model(1, first=2) == ((1,), {"first": 2})


def test_training_ends_with_an_error(tracking: Device) -> None:
    class Broken(Module):
        def forward(self, x: Any) -> None:
            raise ValueError

    with pytest.raises(ValueError):
        Broken()(bt.ones(1, device=tracking))
    assert not is_training()


def test_threads_decide_alone(tracking: Device) -> None:
    seen = []

    class Outer(Module):
        def forward(self, x: Any) -> None:
            other = threading.Thread(target=lambda: seen.append(is_training()))
            other.start()
            other.join()

    Outer()(bt.ones(1, device=tracking))
    assert seen == [False]


def test_checkpoint_trains_in_both_runs_and_moves_buffers_once(tracking: Device) -> None:
    class Outer(Module):
        def __init__(self) -> None:
            self.inner = Scale(device=tracking)

        def forward(self, x: Any) -> Any:
            return bt.checkpoint(self.inner, x)

    model = Outer()
    x = bt.ones(2, device=tracking)
    grads = model(x).sum().backward()
    assert model.inner.trained == [True, True]
    assert model.inner.calls.item() == 1.0
    assert model.inner.factor.grad(grads).tolist() == [1.0, 1.0]
    model.inner.trained.clear()
    model.valid(grad=True)(x).sum().backward()
    assert model.inner.trained == [False, False]


def test_a_checkpoint_as_outermost_call_is_no_inference(tracking: Device) -> None:
    model = Scale(device=tracking)
    x = bt.ones(2, device=tracking)
    bt.checkpoint(model, x).sum().backward()
    assert model.trained == [True, True]
    with no_grad():
        bt.checkpoint(model, x)
    assert model.trained[2:] == [False]


# ---- valid ------------------------------------------------------------------------------------


def test_valid_shows_live_values_and_shares_buffers(tracking: Device) -> None:
    made = []

    class Counted(Scale):
        def __init__(self) -> None:
            made.append(1)
            super().__init__(device=tracking)

    model = Counted()
    infer = model.valid()
    assert made == [1]
    assert type(infer) is Counted and infer is not model
    assert infer.factor is not model.factor
    assert not infer.factor.is_autodiff() and model.factor.is_require_grad()
    assert infer.calls is model.calls
    model.factor.set(bt.full((2,), 5.0))
    model.calls.set(bt.full((), 7.0))
    assert infer.factor.tolist() == [5.0, 5.0]
    assert infer.calls.item() == 7.0
    with no_grad():
        model.factor[0] = 1.0
    assert infer.factor.tolist() == [1.0, 5.0]
    assert infer(bt.ones(2)).is_tracked() is False
    assert infer.state_dict().keys() == model.state_dict().keys()
    assert infer.num_params() == model.num_params()


def test_setting_through_a_valid_module_reaches_the_model(tracking: Device) -> None:
    model = Scale(device=tracking)
    infer = model.valid()
    infer.load_state_dict({"factor": bt.zeros(2), "calls": bt.ones(())})
    assert model.factor.tolist() == [0.0, 0.0]
    assert model.factor.is_require_grad()
    with pytest.raises(BurnError, match="valid"):
        infer.unfreeze()


def test_valid_outlives_the_model_and_makes_no_cycle(tracking: Device) -> None:
    gc.collect()
    infer = Scale(device=tracking).valid()
    assert infer(bt.ones(2)).tolist() == [2.0, 2.0]
    import weakref

    ref = weakref.ref(infer.factor)
    gc.disable()
    try:
        del infer
        assert ref() is None
    finally:
        gc.enable()


def test_train_is_the_reverse_of_valid(tracking: Device) -> None:
    model = Nest(tracking)
    assert model.train() is model
    assert model.valid().train() is model
    assert model.valid().valid().train() is model
    assert model.valid().first.train() is model.first


def test_structure_of_valid_is_that_of_the_call(tracking: Device) -> None:
    model = Nest(tracking)
    infer = model.valid()
    model.rest.append(Scale(device=tracking))
    assert len(infer.rest) == 2
    assert infer.table is not model.table or not model.table.is_autodiff()


def test_moving_a_valid_module_leaves_the_model_alone(tracking: Device) -> None:
    model = Scale(device=tracking)
    infer = model.valid().to_device(Device.flex(1))
    assert infer.factor.device == Device.flex(1)
    assert model.factor.device == Device.default()
    assert model.calls.device == Device.default()
    model.factor.set(bt.zeros(2))
    assert infer.factor.tolist() == [2.0, 2.0]
    half = model.valid().to_dtype(bfloat16)
    assert (half.factor.dtype, model.factor.dtype) == (bfloat16, float32)


# ---- freezing, moving, forking ----------------------------------------------------------------


def test_frozen_parameters_get_no_gradient(tracking: Device) -> None:
    model = Nest(tracking)
    model.freeze("first").freeze(re.compile(r"\.a\."))
    grads = model(bt.ones(2, device=tracking)).sum().backward()
    assert model.first.factor.grad(grads) is None
    assert model.rest[0].factor.grad(grads) is not None  # type: ignore[union-attr]
    assert [n for n, p in model.named_parameters() if not p.requires_grad] == [
        "first.factor", "rest.1.a.factor",
    ]  # fmt: skip
    model.unfreeze()
    assert all(p.is_require_grad() for p in model.parameters())
    model.no_grad()
    assert not any(p.requires_grad for p in model.parameters())


def test_freezing_a_path_that_names_nothing_is_refused(tracking: Device) -> None:
    model = Nest(tracking)
    for change in (model.freeze, model.unfreeze):
        with pytest.raises(ArgumentError) as caught:
            change("frist")
        assert caught.value.remedy == "Did you mean 'first'?"
    with pytest.raises(AttributeError, match="freeze"):
        model.first.factor.requires_grad = False
    model.freeze(re.compile("nothing"))  # a rule may choose nothing
    assert all(p.requires_grad for p in model.parameters())


def test_a_module_moves_to_the_name_of_a_device() -> None:
    model = Scale()
    assert model.to("flex:1").factor.device == Device.flex(1)
    assert model.to_device("flex").factor.device == Device.flex()
    assert model.fork("flex:1").factor.device == Device.flex(1)
    with pytest.raises(DTypeError, match="needs a device or its name; got int"):
        model.to_device(3)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="to_dtype"):
        model.to(3)  # type: ignore[arg-type]


def test_to_device_moves_all_and_keeps_identity(tracking: Device) -> None:
    model = Nest(tracking)
    factor, other = model.first.factor, Device.flex(1)
    model.to_device(other)
    assert model.first.factor is factor
    assert factor.is_autodiff() and factor.is_require_grad()
    assert model.devices() == [other]
    assert {t.device.index for t in (model.table, model.pair[0], factor)} == {1}
    grads = model(bt.ones(2, device=other)).sum().backward()
    assert factor.grad(grads).device == other
    plain = Scale(device=Device.default()).to_device(tracking)
    assert plain.factor.is_require_grad()


def test_to_dtype_converts_floats_only(device: Device) -> None:
    model = Nest(device).to_dtype(float64)
    assert model.first.factor.dtype is float64
    assert model.first.calls.dtype is float64
    assert model.table.dtype is int64
    with pytest.raises(DTypeError):
        model.to_dtype(int64)


def test_fork_is_independent_and_keeps_values_flags_and_ids(tracking: Device) -> None:
    model = Nest(tracking).freeze("first")
    model.first.calls.set(bt.full((), 3.0))
    fork = model.fork()
    assert fork.first.calls.item() == 3.0
    assert not fork.first.factor.requires_grad
    assert fork.first.factor.id == model.first.factor.id
    model.first.factor.set(bt.zeros(2))
    model.first.calls.set(bt.zeros(()))
    assert fork.first.factor.tolist() == [2.0, 2.0]
    assert fork.first.calls.item() == 3.0
    grads = fork(bt.ones(2, device=tracking)).sum().backward()
    assert model.rest[0].factor.grad(grads) is None  # type: ignore[union-attr]
    assert model.fork(Device.flex(1)).first.factor.device == Device.flex(1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_valid_module_stand_alone(copied: Any, tracking: Device) -> None:
    model = Scale(device=tracking)
    alone = copied(model.valid())
    model.factor.set(bt.zeros(2))
    assert alone.factor.tolist() == [2.0, 2.0]
    back = alone.train()
    assert back is not model
    assert back.factor.requires_grad


# ---- state ------------------------------------------------------------------------------------


def test_state_dict_is_a_snapshot(tracking: Device) -> None:
    model = Scale(device=tracking)
    before = model.state_dict()
    held = model.factor.detach()
    model.factor.set(bt.zeros(2))
    model.calls.set(bt.ones(()))
    assert before["factor"].tolist() == [2.0, 2.0] == held.tolist()
    assert before["calls"].item() == 0.0
    assert not before["factor"].is_tracked()


def test_load_changes_all_or_nothing(device: Device) -> None:
    model = Nest(device)
    state = model.state_dict()
    state["first.factor"] = bt.zeros(2)
    state["pair.0"] = bt.zeros(5)
    with pytest.raises(ShapeError, match=r"pair\.0"):
        model.load_state_dict(state)
    assert model.first.factor.tolist() == [2.0, 2.0]
    with pytest.raises(StoreError) as caught:
        model.load_state_dict({"first.factor": bt.zeros(2), "other": bt.zeros(1)})
    assert "other" in str(caught.value) and "pair.0" in str(caught.value)
    assert model.first.factor.tolist() == [2.0, 2.0]
    keys = model.load_state_dict({"first.factor": bt.zeros(2), "other": bt.zeros(1)}, strict=False)
    assert keys.unexpected_keys == ["other"] and "pair.0" in keys.missing_keys
    assert model.first.factor.tolist() == [0.0, 0.0]
    with pytest.raises(DTypeError):
        model.load_state_dict({"first.factor": [1.0, 2.0]}, strict=False)  # type: ignore[dict-item]


def test_load_takes_dtypes_and_devices_of_the_module(tracking: Device) -> None:
    model = Scale(device=tracking)
    given = bt.ones(2, dtype=float64, device=Device.flex(1))
    model.load_state_dict({"factor": given, "calls": bt.ones(())})
    assert model.factor.dtype is float32
    assert model.factor.device == tracking
    assert model.factor.is_require_grad()


def test_records_carry_ids_and_dtypes(tracking: Device) -> None:
    model, other = Scale(device=tracking), Scale(device=tracking)
    record = model.to_dtype(float64).into_record()
    model.factor.set(bt.zeros(2, dtype=float64))
    other.load_record(record)
    assert other.factor.tolist() == [2.0, 2.0]
    assert other.factor.id == model.factor.id
    assert other.factor.dtype is float64
    other.to_dtype(float32).load_record(record.cast_to_module_dtype())
    assert other.factor.dtype is float32
    part = model.into_record("factor")
    assert list(part) == ["factor"]
    with pytest.raises(StoreError, match="calls"):
        other.load_record(part)
    other.load_record(part.allow_partial())
    with pytest.raises(StoreError):
        other.load_record(type(part)({**record, "more": bt.zeros(1)}))


# ---- parameters -------------------------------------------------------------------------------


def test_parameter_keeps_identity_leaf_and_id(tracking: Device) -> None:
    p = Parameter(bt.ones(2, device=tracking))
    name, node = p.id, p.node
    grads = (p * 3).sum().backward()
    p.set(bt.zeros(2))
    assert (p.id, p.node) == (name, node)
    assert p.grad(grads).tolist() == [3.0, 3.0]
    assert len(name) == 13 and Parameter(bt.ones(1)).id != name
    with pytest.raises(ShapeError):
        p.set(bt.zeros(3))
    with pytest.raises(DTypeError):
        p.set(bt.zeros(2, dtype=float64))
    with pytest.raises(DTypeError):
        Parameter([1.0])  # type: ignore[arg-type]
    with pytest.raises(DTypeError):
        Buffer(1.0)  # type: ignore[arg-type]
    loaded = pickle.loads(pickle.dumps(p))
    assert loaded.id == name and loaded.is_require_grad()


def test_lazy_parameter_takes_any_shape_once(tracking: Device) -> None:
    p = Parameter.lazy(device=tracking)
    twin = p.twin()
    assert not p.is_initialized and p.is_require_grad()
    with pytest.raises(ShapeError, match="lazy"):
        _ = p.shape
    p.set(bt.ones(2, 3))
    assert p.is_initialized and twin.shape == (2, 3)
    with pytest.raises(ShapeError):
        p.set(bt.ones(3))


def test_buffer_is_plain_and_takes_values_in_its_dtype(tracking: Device) -> None:
    b = Buffer(bt.zeros(2, device=tracking))
    assert not b.is_autodiff()
    b.set(bt.ones(2, dtype=float64, device=Device.flex(1)))
    assert b.dtype is float32 and b.device == Device.default()
    b[0] = 5.0
    assert b.tolist() == [5.0, 1.0]
    with pytest.raises(ShapeError):
        b.set(bt.ones(3))
    assert not Buffer(bt.zeros(1), persistent=False).persistent


def test_containers_of_their_own_class_are_that_in_inference_too(tracking: Device) -> None:
    class Scaled(list[Any]):
        def __init__(self, parts: Any, by: float = 1.0) -> None:
            super().__init__(parts)
            self.by = by

    class Named(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return self["one"]

    class Holder(Module):
        def __init__(self) -> None:
            self.parts = Scaled([Scale(2, tracking)], 3.0)
            self.named = Named(one=Scale(2, tracking))

        def forward(self, x: Any) -> Any:
            return self.named["other"](self.parts[0](x) * self.parts.by)

    model, x = Holder(), bt.ones(1, 2, device=tracking)
    assert model.valid()(x).tolist() == model(x).tolist() == [[12.0, 12.0]]
