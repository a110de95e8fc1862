"""Worker processes: the same batches, errors with their own traceback, a clean end."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from burn_dataset import (
    ArrayDataset,
    DataLoader,
    InMemoryDataset,
    IterableDataset,
    MapDataset,
    WorkerError,
)
from burn_dataset.shared import Blocks, Slots, lay_out, take_out
from burn_std import ArgumentError, BackendError


def values(batch):
    return batch.numpy().tolist() if hasattr(batch, "numpy") else batch


def run(loader):
    out = [values(b) for b in loader]
    loader.close()
    return out


def blocks():
    return {p.name for p in Path("/dev/shm").glob("psm_*")} if Path("/dev/shm").exists() else set()


def children():
    return [p for p in multiprocessing.active_children() if p.name.startswith("burn-loader")]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_number_of_workers_changes_nothing(cases, workers, drop_last):
    # B102: a random number per item; also in later epochs and from the middle of one.
    data = MapDataset(InMemoryDataset(range(22)), cases.noisy, random=True)

    def make(count):
        return DataLoader(data, 4, shuffle=True, seed=9, drop_last=drop_last, num_workers=count)

    one, many = make(0), make(workers)
    want = [[values(b) for b in one] for _ in range(2)]
    found = [[values(b) for b in many] for _ in range(2)]
    assert found == want
    assert want[0] != want[1]
    many.epoch, many.position = 1, 2
    assert run(many) == want[1][2:]


def test_streams_are_the_same_too(cases):
    def make(count):
        stream = IterableDataset(range(23)).map(cases.noisy, random=True)
        return DataLoader(stream, 4, seed=2, num_workers=count)

    want = [[values(b) for b in loader] for loader in [make(0)] for _ in range(2)]
    many = make(3)
    assert [[values(b) for b in many] for _ in range(2)] == want
    many.epoch, many.position = 0, 2
    assert run(many) == want[0][2:]
    with pytest.raises(TypeError, match="no length"):
        len(many)
    empty = DataLoader(IterableDataset([]), 2, num_workers=2)
    assert run(empty) == []


def test_batches_of_any_shape_come_through_shared_memory(cases):
    data = MapDataset(InMemoryDataset(range(7)), cases.image)
    loader = DataLoader(data, 1, num_workers=2, prefetch=3, collate=cases.first)
    held = list(loader)
    loader.close()
    for k, batch in enumerate(held):
        assert batch["x"].shape == (3, 5, k % 3 + 1)
        assert (batch["x"].numpy() == k).all()
        assert (batch["name"], batch["none"]) == (f"n{k}", None)


def test_whole_batches_of_arrays():
    data = ArrayDataset(np.arange(40.0).reshape(10, 4), np.arange(10))
    loader = DataLoader(data, 4, num_workers=2)
    assert [values(y) for _, y in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    loader.close()


def test_workers_work_at_once_and_in_order(cases):
    data = MapDataset(InMemoryDataset(range(6)), cases.slow)
    assert run(DataLoader(data, 1, num_workers=3)) == [[k] for k in range(6)]
    pids = run(DataLoader(MapDataset(InMemoryDataset(range(4)), cases.whose), 1, num_workers=2))
    assert len({p for (p,) in pids}) == 2


def test_an_error_comes_with_its_own_traceback(cases):
    loader = DataLoader(cases.Failing(7), 2, num_workers=2)
    seen = []
    with pytest.raises(KeyError, match="item 7 is broken") as caught:
        seen += [values(b) for b in loader]
    assert "in __getitem__" in str(caught.value.__cause__)
    assert "worker_cases" in str(caught.value.__cause__)
    assert children() == []
    with pytest.raises(RuntimeError, match="Unportable: 1-2"):
        run(DataLoader(MapDataset(InMemoryDataset([1]), cases.unportable), num_workers=1))


def test_a_worker_that_dies_is_named(cases):
    data = MapDataset(InMemoryDataset(range(9)), cases.killed)
    with pytest.raises(WorkerError, match=r"burn-loader-\d, exit code -9"):
        run(DataLoader(data, 1, num_workers=2))
    assert children() == []


def test_an_item_that_hangs_is_not_waited_for_for_ever(cases):
    loader = DataLoader(
        MapDataset(InMemoryDataset(range(4)), cases.endless), num_workers=2, timeout=1.0
    )
    begin = time.monotonic()
    with pytest.raises(WorkerError, match=r"within 1 seconds.*burn-loader-0"):
        next(iter(loader))
    assert time.monotonic() - begin < 30
    assert not children()


def test_a_split_loader_with_workers(cases):
    data = MapDataset(InMemoryDataset(range(22)), cases.noisy, random=True)

    def make(count):
        return DataLoader(data, 4, shuffle=True, seed=9, num_workers=count)

    want = run(make(0))
    assert [run(p) for p in make(2).split([None, None])] == [want[::2], want[1::2]]
    stream = IterableDataset(range(23)).map(cases.noisy, random=True)
    want = run(DataLoader(stream, 2))
    parts = DataLoader(stream, 2, num_workers=2).split([None, None])
    assert [run(p) for p in parts] == [want[::2], want[1::2]]


def test_a_script_that_works_at_import_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from burn_dataset import DataLoader, InMemoryDataset\n"
        "list(DataLoader(InMemoryDataset([1, 2]), num_workers=1))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        'exit code 1. Does the script begin its work under `if __name__ == "__main__":`?'
    )


def test_a_worker_touches_no_device(cases):
    data = MapDataset(InMemoryDataset(range(2)), cases.on_a_device)
    with pytest.raises(BackendError, match="loader_worker"):
        run(DataLoader(data, 1, num_workers=1))


def test_what_does_not_pickle_is_named(cases):
    data = MapDataset(InMemoryDataset([1]), lambda x: x)
    with pytest.raises(ArgumentError, match=r"dataset\.fn of type function"):
        run(DataLoader(data, num_workers=1))
    with pytest.raises(ArgumentError, match=r"dataset\.source\.inner\['deep'\]\[0\] of type lock"):
        run(DataLoader(
            MapDataset(cases.Holder(threading.Lock()), cases.squared), num_workers=1
        ))  # fmt: skip
    with pytest.raises(ArgumentError, match="collate of type function"):
        run(DataLoader(InMemoryDataset([1]), num_workers=1, collate=lambda items: items))


def test_nothing_is_left_behind(cases):
    before = blocks()
    data = MapDataset(InMemoryDataset(range(40)), cases.noisy, random=True)
    loader = DataLoader(data, 2, num_workers=2)
    for k, _ in enumerate(loader):
        if k == 3:
            break
    gc.collect()
    assert children() == []
    # Left in the middle, it begins anew.
    assert len(run(loader)) == 20
    dropped = DataLoader(data, 2, num_workers=2)
    next(iter(dropped))
    del dropped
    gc.collect()
    assert (children(), blocks() - before) == ([], set())


def test_a_worker_in_the_middle_of_a_batch_is_not_waited_for(cases):
    loader = DataLoader(MapDataset(InMemoryDataset([0, 1]), cases.endless), num_workers=1)
    thread = threading.Timer(1.0, lambda: children()[0].terminate())
    thread.start()
    start = time.monotonic()
    with pytest.raises(WorkerError):
        run(loader)
    thread.join()
    assert time.monotonic() - start < 10


def test_blocks_grow_and_are_removed():
    slots, seen = Slots(), Blocks()
    for size in (3, 1000, 10):
        batch = (np.arange(size), {"a": np.ones((2, 2), np.float16)}, "text")
        plan, name = slots.write(0, batch)
        x, rest, text = seen.read(0, plan, name)
        assert x.tolist() == list(range(size))
        assert (rest["a"].dtype, text) == (np.float16, "text")
        assert x.flags.owndata
    empty = np.zeros((0, 3))
    assert seen.read(1, *slots.write(1, empty)).shape == (0, 3)
    slots.close()
    seen.close()
    arrays = []
    assert take_out(lay_out("plain", arrays), None) == "plain"
    assert arrays == []


@pytest.mark.parametrize("make", [
    lambda: DataLoader(InMemoryDataset([1]), num_workers=-1),
    lambda: DataLoader(InMemoryDataset([1]), prefetch=0),
    lambda: DataLoader(IterableDataset([1]), shuffle=True),
])  # fmt: skip
def test_settings_that_make_no_sense(make):
    with pytest.raises(ArgumentError):
        make()
