"""A few of the random graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

import burn
from tests.fusion import random_graphs as graphs


@pytest.mark.parametrize(("name", "count"), [("fusion-flex", 40), ("cpu", 25)])
def test_graphs_give_what_their_functions_give(name: str, count: int, tmp_path: Path) -> None:
    device = burn.device(name)
    came = [graphs.check(seed, device, tmp_path) for seed in range(count)]
    assert came.count("same") > count * 3 // 4


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = burn.device("fusion-flex")
    run = graphs.Graph.run
    monkeypatch.setattr(
        graphs.Graph, "run", lambda self, on, *given: [x + 1 for x in run(self, on, *given)]
    )
    with pytest.raises(graphs.Difference):
        for seed in range(5):
            graphs.check(seed, device, tmp_path)
