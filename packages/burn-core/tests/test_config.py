from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest

import burn_tensor as bt
from burn_core import Config, Module, ModuleConfig, Parameter
from burn_dispatch import Device
from burn_std import ConfigError, DType
from burn_std.dtypes import bfloat16, float32
from burn_tensor import functional as F


class Layer(Module):
    def __init__(self, size: int, scale: float = 1.0, dtype: DType | None = None) -> None:
        self.size = size
        self.weight = Parameter(bt.ones(size, dtype=dtype))


class Wide(Layer):
    """Calls the constructor of its base: only the outermost call is recorded."""

    def __init__(self, factor: int, *parts: Any, act: Any = None, **rest: Any) -> None:
        super().__init__(factor * 10)
        self.parts = parts
        self.act = act
        self.rest = rest


def test_a_constructor_without_a_device_makes_its_parts_on_the_one_that_is_asked_for() -> None:
    config = Layer(2).config()
    assert config.init("flex:1").weight.device == Device.flex(1)
    assert config.init(Device.default().autodiff()).weight.is_require_grad()
    assert not config.init().weight.is_require_grad()


def test_recorded_call_survives_json() -> None:
    made = Wide(2, 1, "two", (3, None), act=F.relu, more=float("inf"), dims=[1, 2])
    text = made.config().to_json()
    assert ModuleConfig.from_json(text) == made.config()
    again = ModuleConfig.from_json(text).init()
    assert type(again) is Wide
    assert again.parts == (1, "two", (3, None))
    assert again.act is F.relu
    assert again.rest == {"more": float("inf"), "dims": [1, 2]}
    assert again.size == 20


def test_modules_among_the_arguments_are_rebuilt_and_tied_ones_stay_one() -> None:
    one = Layer(3, dtype=bfloat16)
    made = Wide(1, one, [one, Layer(2)], act={"x": one})
    again = ModuleConfig.from_json(made.config().to_json()).init()
    assert again.parts[0] is again.parts[1][0] is again.act["x"]
    assert again.parts[0].weight.dtype is bfloat16
    assert again.parts[1][1].size == 2


def test_what_cannot_be_serialised_is_named_when_asked_for() -> None:
    made = Wide(1, act={"deep": [object()]})
    with pytest.raises(ConfigError, match=r"Wide\.act\.deep\[0\]") as caught:
        made.config()
    assert caught.value.got == "object"


def test_a_config_keeps_nothing_alive() -> None:
    inner = Layer(2)
    outer = Wide(1, inner)
    outer.parts = ()
    ref = weakref.ref(inner)
    del inner
    gc.collect()
    assert ref() is None
    assert outer.config().args["parts"][0].args == {"size": 2}


def test_replace_and_device(tmp_path: Path) -> None:
    config = Layer(2).config().replace(size=4)
    config.save(tmp_path / "layer.json")
    assert ModuleConfig.load(tmp_path / "layer.json").init().size == 4
    assert [p.name for p in tmp_path.iterdir()] == ["layer.json"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"module": "Layer", "args": {}, "more": 1}, "module and args"),
        ({"module": "nowhere.Layer2", "args": {}}, "no module class"),
        ({"module": "__main__.Layer2", "args": {}}, "Import the file that defines Layer2 first"),
        ([], "module and args"),
    ],
)
def test_wrong_forms_are_refused(data: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ModuleConfig.from_dict(data).init()


def test_fields_that_do_not_fit_are_all_named() -> None:
    name = Layer(1).config().module
    with pytest.raises(ConfigError) as caught:
        ModuleConfig(name, {"sise": 2, "skale": 1}).init()
    assert caught.value.got == "unknown ['sise', 'skale'], missing ['size']"


# ---- experiments ------------------------------------------------------------------------------


class Inner(Config):
    rate: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)


class Run(Config):
    name: str
    inner: Inner = Inner()
    layers: list[int] | None = None
    steps: int | None = None
    dtype: DType = float32
    folder: Path = Path("out")
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] | None = None
    model: ModuleConfig | None = None


def test_experiment_configs_survive_json(tmp_path: Path) -> None:
    run = Run(
        "a", Inner(rate=1), steps=3, many=(Inner(), Inner(0.5)), by_name={"x": Inner(0.25)},
        model=Layer(3).config(), layers=[3],
    )  # fmt: skip
    run.save(tmp_path / "run.json")
    again = Run.load(tmp_path / "run.json")
    assert again == run
    assert again.many[1].betas == (0.9, 0.99)
    data = json.loads((tmp_path / "run.json").read_text())
    assert data["inner"] == {"rate": 1, "betas": [0.9, 0.99]}
    assert again.model is not None and again.model.init().size == 3


def test_experiment_configs_are_frozen_and_replaced() -> None:
    run = Run("a")
    with pytest.raises(AttributeError):
        run.name = "b"  # type: ignore[misc]
    assert run.replace(name="b").name == "b"
    with pytest.raises(ConfigError, match="nme"):
        run.replace(nme="b")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"nme": "a"}', r"unknown \['nme'\], missing \['name'\]"),
        ('{"name": 3}', r"Run\.name: needs str"),
        ('{"name": "a", "steps": "many"}', r"Run\.steps: needs int or NoneType"),
        ('{"name": "a", "inner": {"rat": 1}}', r"Inner: fields must match"),
        ('{"name": "a", "dtype": {"dtype": "float33"}}', "float33"),
        ('{"name": ', "needs JSON"),
        ("[]", "needs fields by name"),
    ],
)
def test_wrong_experiments_are_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Run.from_json(text)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json"):
        Run.load(tmp_path / "gone.json")
