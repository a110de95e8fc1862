from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

import burn_tensor as bt
from burn_core import Module, Parameter, ParamGroup, group_of
from burn_std import ArgumentError, ConfigError


class Block(Module):
    def __init__(self) -> None:
        self.weight = Parameter(bt.ones(2, 2))
        self.bias = Parameter(bt.ones(2))


class Net(Module):
    def __init__(self) -> None:
        self.layers = [Block(), Block()]
        self.layers2 = Block()


def chosen(selector: Any) -> list[str]:
    return [path for path, _ in Net().select(selector)]


@pytest.mark.parametrize(
    ("selector", "paths"),
    [
        ("layers", ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]),
        ("layers2.bias", ["layers2.bias"]),
        ("layers.*.bias", ["layers.0.bias", "layers.1.bias"]),
        (["layers.0", "layers2.bias"], ["layers.0.weight", "layers.0.bias", "layers2.bias"]),
        (re.compile("BIAS$", re.I), ["layers.0.bias", "layers.1.bias", "layers2.bias"]),
        (lambda path, p: len(p.shape) == 1, ["layers.0.bias", "layers.1.bias", "layers2.bias"]),
        (ParamGroup.regex("bias") & ParamGroup.path("layers2"), ["layers2.bias"]),
        (ParamGroup.path("layers2") - ParamGroup.regex("bias"), ["layers2.weight"]),
        (~ParamGroup.path("layers"), ["layers2.weight", "layers2.bias"]),
        (ParamGroup.path("layers.0.bias") | ParamGroup.path("layers2.bias"),
         ["layers.0.bias", "layers2.bias"]),
    ],
)  # fmt: skip
def test_selectors_choose(selector: Any, paths: list[str]) -> None:
    assert chosen(selector) == paths


def test_none_and_the_empty_path_choose_all() -> None:
    assert len(chosen(None)) == len(chosen("")) == 6


def test_groups_survive_json() -> None:
    group = (ParamGroup.path("layers") | ParamGroup.regex("2")) - group_of(re.compile("BIAS", re.I))
    again = ParamGroup.from_dict(group.to_dict())
    assert (
        chosen(again) == chosen(group) == ["layers.0.weight", "layers.1.weight", "layers2.weight"]
    )


def test_groups_of_functions_are_not_saved() -> None:
    with pytest.raises(ConfigError):
        (ParamGroup.predicate(lambda path, p: True) & ParamGroup.all()).to_dict()


@pytest.mark.parametrize("selector", [3, [3], object()])
def test_nonsense_is_refused(selector: Any) -> None:
    with pytest.raises(ArgumentError):
        group_of(selector)
    with pytest.raises(ArgumentError):
        ParamGroup.regex("(")
    with pytest.raises(ConfigError):
        ParamGroup.from_dict({"paths": []})


def by_rank(path: str, p: Parameter) -> bool:
    return len(p.shape) > 1


def test_groups_travel() -> None:
    picked = ParamGroup.path("layers.0") | (ParamGroup.regex("weight$") - ParamGroup.path("layers"))
    for group in (picked, ParamGroup.predicate(by_rank)):
        assert chosen(pickle.loads(pickle.dumps(group))) == chosen(group)
