"""What a child of `test_full_disk.py` does: save, fill the disk, save again, say what is left.

python full_disk.py FOLDER limit|tmpfs
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import burn
from burn import nn, store
from burn.train import Checkpoints, CsvLogger, FileLogger, Mark

ROOM = 200_000


def parts(size: int) -> dict[str, dict[str, burn.Tensor]]:
    return {"model": {"w": burn.ones(size)}, "optimizer": {}}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def fill(folder: Path, kind: str) -> None:
    """Leave room for files of some bytes, not for the large ones."""
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
        return
    with (folder.parent / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(65536))
        except OSError:
            filler.truncate(max(0, filler.tell() - ROOM))


def main(folder: Path, kind: str) -> None:
    folder.mkdir()
    small, large = nn.Linear(3, 2), nn.Linear(1000, 200)
    checkpoints = Checkpoints(folder / "checkpoints")
    rows, table = FileLogger(folder / "log"), CsvLogger(folder / "log" / "rows.csv")
    long = "x" * 2 * ROOM
    steps: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        f"store.{suffix}": (
            lambda path=folder / f"m.{suffix}": store.save(small, path),  # type: ignore[misc]
            lambda path=folder / f"m.{suffix}": store.save(large, path),  # type: ignore[misc]
        )
        for suffix in ("safetensors", "bpk", "npz")
    } | {
        "checkpoint": (
            lambda: checkpoints.save(Mark(1), parts(2), {}),
            lambda: checkpoints.save(Mark(2), parts(ROOM), {}),
        ),
        "rows": (lambda: rows.epoch({"epoch": 1}), lambda: rows.epoch({"epoch": 2, "note": long})),
        "message": (lambda: rows.message("begins"), lambda: rows.message(long)),
        "table": (
            lambda: table.epoch({"epoch": 1}),
            lambda: table.epoch({"epoch": 2, "note": long}),
        ),
    }
    for first, _ in steps.values():
        first()
    before = files(folder)
    fill(folder, kind)
    said = {}
    for name, (_, then) in steps.items():
        try:
            then()
            said[name] = "nothing"
        except Exception as error:  # noqa: BLE001 - the parent judges it
            said[name] = f"{type(error).__name__}: {str(error)[:300]}"
    after = files(folder)
    read = store.load(nn.Linear(3, 2), folder / "m.bpk").complete
    loaded = checkpoints.load(checkpoints.latest() or Mark(0)).parts["model"]["w"].tolist()
    print(
        json.dumps(
            {
                "said": said, "changed": [k for k in after if after[k] != before.get(k)],
                "gone": [k for k in before if k not in after], "read": read, "loaded": loaded,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
