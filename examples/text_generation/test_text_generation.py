"""The example, briefly: it learns, writes, and its cache changes nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import burn

HERE = Path(__file__).parent


@pytest.fixture
def transformer(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example's model as a module; its plain name is given back afterwards."""
    monkeypatch.syspath_prepend(HERE)
    import model

    yield model
    del sys.modules["model"]


def test_it_learns_and_writes(tmp_path: Path, run_script: Callable[..., str], device: str) -> None:
    # Text of which nearly every character can be known from those before it.
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six seven eight nine ten. " * 80)
    small = ["--width", 32, "--context", 32, "--batch-size", 16, "--lr", 0.01]
    said = run_script(
        "train.py", "--text", text, "--steps", 60, *small, "--out", tmp_path, device=device
    )
    found = re.search(r"held out: ([0-9.]+) bits", said)
    assert found, said
    assert float(found[1]) < 2.5, "a uniform guess costs four bits"
    # A prompt and a length beyond the context: the cache begins anew on the way.
    ask = ["one two three four five six seven eight ", "--length", 60, "--folder", tmp_path]
    first = run_script("generate.py", *ask, device=device)
    assert len(first) == 40 + 60 + 1
    assert first == run_script("generate.py", *ask, device=device)
    assert first != run_script("generate.py", *ask, "--seed", 5, device=device)


def test_without_a_model_it_says_what_to_do(tmp_path: Path, run_script: Callable[..., str]) -> None:
    assert "run train.py first" in run_script("generate.py", "--folder", tmp_path, fails=True)


def test_the_cache_gives_what_the_whole_text_gives(transformer: ModuleType, device: str) -> None:
    on = burn.device(device)
    on.seed(3)
    model = transformer.CharTransformer(11, context=12, width=16, heads=2, device=on)
    numbers = burn.tensor(np.arange(10)[None] % 7, device=on)
    whole = model(numbers).numpy()
    cache = model.encoder.new_cache(1, 12)
    parts = [model(numbers[:, a:b], a, cache) for a, b in ((0, 4), (4, 5), (5, 6), (6, 10))]
    np.testing.assert_allclose(burn.cat(parts, 1).numpy(), whole, rtol=1e-4, atol=1e-5)


def test_a_step_keeps_its_shapes(transformer: ModuleType) -> None:
    """So the recorder makes a plan for the prompt and one for all characters after it."""
    on = burn.device("fusion-flex:91")
    model = transformer.CharTransformer(11, context=24, width=16, heads=2, device=on)
    prompt = burn.tensor([[1, 2, 3]], device=on)
    # What made the parameters is part of the first program.
    for _ in range(2):
        list(model.generate(prompt, 4, temperature=0))
    before = on.resource.backend.report()["plans"]
    list(model.generate(prompt, 18, temperature=0))
    assert on.resource.backend.report()["plans"] == before
