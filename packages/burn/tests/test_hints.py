"""Names of other libraries: what is said where one is written here."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

import burn


@pytest.mark.parametrize(("path", "words"), [
    ("optim.AdmaW", "Did you mean burn.optim.AdamW"), ("optim.SparseAdam", "Adam"),
    ("dataset.TensorDataset", "ArrayDataset"),
    ("dataset.DistributedSampler", r"loader.split\(devices\)"),
    ("train.Trainer", "SupervisedTraining"),
    ("nn.utils", "burn.nn.rnn"), ("save", "burn.store.save"), ("vmap", "leading dims"),
    ("jit", "burn.capture"), ("layer_norm", "burn.functional.layer_norm"), ("svd", "linalg.svd"),
    ("ModuleDict", "burn.nn.ModuleDict"), ("AdamW", "burn.optim.AdamW"), ("hub", "burn.store"),
    ("linalg.eig", "eigh"), ("fft.fft", "rfft"), ("functional.relu_", "burn.functional.relu"),
    ("nn.init.xavier_uniform", "xavier_uniform_"), ("train.F1Score", "FBetaScore"),
])  # fmt: skip
def test_a_name_of_another_library_says_what_to_write(path: str, words: str) -> None:
    place, _, name = path.rpartition(".")
    module = burn
    for part in place.split(".") if place else []:
        module = getattr(module, part)
    with pytest.raises(AttributeError, match=words):
        getattr(module, name)


@pytest.mark.parametrize("part", ["optim", "dataset", "train"])
def test_names_that_are_named_in_hints_are_there(part: str) -> None:
    module = getattr(burn, part)
    owner = module if part == "train" else import_module(f"burn_{part}")
    for text in owner._OTHERWISE.values():
        found = [word.strip("(,.") for word in text.replace("(", " ").split()]
        assert any(hasattr(module, word.rpartition(".")[2]) for word in found), text


def test_functional_is_found_where_pytorch_has_it() -> None:
    from burn.nn import functional as F

    found = import_module("burn.nn.functional")
    assert F.relu is burn.functional.relu
    assert found.relu is burn.functional.relu


def test_what_is_written_instead_exists() -> None:
    for text in burn._OTHERWISE.values():
        for path in re.findall(r"\bburn((?:\.\w+)+)", text):
            value: Any = burn
            for part in path[1:].split("."):
                value = getattr(value, part)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: burn.zeros(2, requires_grad=True), "require_grad"),
    (lambda: burn.ones(2, requires_grad=True), "require_grad"),
    (lambda: burn.tensor([1.0], requires_grad=True), "require_grad"),
    (lambda: burn.randn(2, requires_grad=True), "require_grad"),
    (lambda: burn.rand(2, generator=None), "manual_seed"),
    (lambda: burn.zeros(2).sum(axis=0), "Write dim="),
    (lambda: burn.zeros(2, 2).mean(1, keepdims=True), "Write keepdim="),
    (lambda: burn.cat([burn.zeros(2)], axis=0), "Write dim="),
    (lambda: burn.zeros(size=(2,)), "without its name"),
    (lambda: burn.nn.Linear(2, 3, biass=False), "bias"),
    (lambda: burn.optim.Adam(lr=0.1, fused=True), "one operation"),
    (lambda: burn.optim.SGD(params=[], lr=0.1), "opt.step"),
    (lambda: burn.optim.lr_scheduler.StepLR(0.1, optimizer=None, step_size=1), "opt.step"),
    (lambda: burn.dataset.DataLoader([1], collate_fn=list), "collate="),
    (lambda: burn.dataset.DataLoader([1], num_samples=3), "weights="),
    (lambda: burn.dataset.DataLoader([1], sampler=[0]), "SelectDataset"),
    (lambda: burn.dataset.DataLoader([1], pin_memory=True), "Leave it out"),
])  # fmt: skip
def test_an_argument_of_another_library_says_what_to_write(call: Any, words: str) -> None:
    with pytest.raises(burn.ArgumentError, match=words):
        call()


def test_a_step_without_gradients_says_what_to_write() -> None:
    with pytest.raises(burn.ArgumentError, match=r"opt\.step\(model, loss\.backward\(\)\)"):
        burn.optim.Adam(lr=0.1).step()


def test_a_device_has_a_name_and_no_type() -> None:
    with pytest.raises(AttributeError, match=r"device\.name"):
        _ = burn.Device.default().type
