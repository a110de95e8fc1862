"""Names of other libraries: what is said where one is written here."""

from __future__ import annotations

from importlib import import_module

import pytest

import burn


@pytest.mark.parametrize(("path", "words"), [
    ("optim.Rprop", "RMSprop"), ("optim.AdmaW", "Did you mean burn.optim.AdamW"),
    ("optim.lr_scheduler.ChainedScheduler", "ComposedLR"),
    ("dataset.TensorDataset", "ArrayDataset"),
    ("dataset.DistributedSampler", r"loader.split\(devices\)"),
    ("train.Trainer", "SupervisedTraining"),
    ("nn.functional", "from burn import functional"), ("save", "burn.store.save"),
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
