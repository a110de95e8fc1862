"""Checkpoints: one folder each, complete or absent, checked before they are believed.

A folder holds tensors by part (model, optimizer, ...) as safetensors and `state.json`, which names
every file's size and checksum. It is written under another name, brought to the disk, then
renamed, so a kill at any moment leaves the checkpoints before it as they were.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from burn_std import BurnError, TrainError
from burn_store import open as open_tensors, save_tensors
from burn_tensor import Tensor
from burn_train.rules import KeepLast, KeepRule, Row
from burn_train.summary import LOG_FILE, METRICS_FILE

_NAME = re.compile(r"^epoch-(\d+)(?:-batch-(\d+))?$")
_STATE = "state.json"
_CHECK = "checksum"

Parts = Mapping[str, Mapping[str, Tensor]]


class Mark(NamedTuple):
    """Where a training was.

    Attributes:
        epoch: finished epochs.
        batch: batches done of the next one; 0 at the end of an epoch.
    """

    epoch: int
    batch: int = 0


class Saved(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        mark: where the training was.
        parts: tensors by part and name.
        state: everything else, as it was in JSON.
    """

    mark: Mark
    parts: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of a training in a folder.

    Args:
        directory: made when the first is written.
        rule: which stay; the newest two by default.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(folder)
        ...     _ = checkpoints.save(Mark(1), {"model": {"w": burn.ones(2)}}, {"seed": 3})
        ...     found = checkpoints.load(checkpoints.latest())
        >>> found.parts["model"]["w"].tolist(), found.state["seed"]
        ([1.0, 1.0], 3)
    """

    def __init__(self, directory: str | os.PathLike[str], rule: KeepRule | None = None) -> None:
        self.directory = Path(directory)
        self.rule = rule or KeepLast(2)

    def marks(self) -> list[Mark]:
        """Return where there are checkpoints, ascending; loading shows whether they are whole."""
        if not self.directory.is_dir():
            return []
        found = (_NAME.match(p.name) for p in self.directory.iterdir() if p.is_dir())
        return sorted(Mark(int(m[1]), int(m[2] or 0)) for m in found if m)

    def latest(self) -> Mark | None:
        """Return the newest, or None."""
        marks = self.marks()
        return marks[-1] if marks else None

    def path(self, mark: Mark) -> Path:
        """Return the folder of a checkpoint.

        Args:
            mark: where the training was.
        """
        name = f"epoch-{mark.epoch}" + (f"-batch-{mark.batch}" if mark.batch else "")
        return self.directory / name

    # ---- writing ------------------------------------------------------------------------------

    def wanted(self, rows: Sequence[Row]) -> bool:
        """Return whether the rule keeps a checkpoint of the last epoch.

        Args:
            rows: values of all epochs so far.
        """
        return bool(rows) and int(rows[-1]["epoch"]) in self.rule.keep(self._rows(rows))

    def _rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of epochs that have a checkpoint, and the last."""
        have = {m.epoch for m in self.marks() if not m.batch} | {int(rows[-1]["epoch"])}
        return [r for r in rows if int(r["epoch"]) in have]

    def save(
        self, mark: Mark, parts: Parts, state: Mapping[str, Any], rows: Sequence[Row] = ()
    ) -> Path:
        """Write a checkpoint, then delete those that need not stay.

        Args:
            mark: where the training is.
            parts: tensors by part and name.
            state: what else there is, as JSON can hold it.
            rows: values of all epochs, for the rule.

        Returns:
            The folder.

        Raises:
            TrainError: the disk refuses; older checkpoints stay.
        """
        target = self.path(mark)
        temporary = self.directory / f".{target.name}.{os.getpid()}.tmp"
        aside = self.directory / f".{target.name}.{os.getpid()}.old.tmp"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            temporary.mkdir()
            for part, tensors in parts.items():
                save_tensors(tensors, temporary / f"{part}.safetensors")
            files = {p.name: _facts(p) for p in sorted(temporary.iterdir())}
            whole = {"epoch": mark.epoch, "batch": mark.batch, "files": files, **state}
            # The checksum is that of what will be read.
            check = _checksum(json.loads(json.dumps(whole)))
            text = json.dumps({**whole, _CHECK: check}, indent=1)
            (temporary / _STATE).write_text(text, encoding="utf-8")
            for p in (*temporary.iterdir(), temporary):
                _to_disk(p)
            if target.exists():  # gone only when the new one is there
                os.replace(target, aside)
            os.replace(temporary, target)
            _to_disk(self.directory)
        except (OSError, BurnError, ValueError, TypeError) as cause:
            raise TrainError(
                "Checkpoints.save", "the checkpoint could not be written", got=str(cause),
                remedy="The checkpoints before it are as they were.",
            ) from cause  # fmt: skip
        finally:
            self._bring_back()
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(aside, ignore_errors=True)
        self._prune(mark, rows)
        return target

    def _sweep(self) -> None:
        """Remove what a killed process left half written."""
        self._bring_back()
        for p in self.directory.glob(".epoch-*.tmp"):
            shutil.rmtree(p, ignore_errors=True)

    def _bring_back(self) -> None:
        """Put a checkpoint back that was to be replaced by one that never came."""
        for p in self.directory.glob(".epoch-*.old.tmp"):
            target = self.directory / p.name.split(".")[1]
            if not target.exists():
                with suppress(OSError):
                    os.replace(p, target)

    def _prune(self, mark: Mark, rows: Sequence[Row]) -> None:
        """Delete what no rule keeps; the one just written always stays."""
        whole = [m for m in self.marks() if not m.batch]
        if rows and not mark.batch:
            stay = self.rule.keep(self._rows(rows))
        else:
            stay = {m.epoch for m in whole}
        for m in self.marks():
            # A place inside an epoch matters until there is a newer checkpoint.
            if m != mark and (m < mark if m.batch else m.epoch not in stay):
                shutil.rmtree(self.path(m), ignore_errors=True)

    # ---- reading ------------------------------------------------------------------------------

    def load(self, mark: Mark) -> Saved:
        """Return a checkpoint after checking every file's size and checksum.

        Args:
            mark: where the training was.

        Raises:
            TrainError: it is not whole.
        """
        source = self.path(mark)
        try:
            state = json.loads((source / _STATE).read_text(encoding="utf-8"))
            if _checksum(state) != state.pop(_CHECK):
                raise ValueError(f"{_STATE} is not what was written")
            files = state.pop("files")
            parts: dict[str, dict[str, Tensor]] = {}
            for name, facts in files.items():
                if Path(name).name != name or _facts(source / name) != facts:
                    raise ValueError(f"{name} is not what was written")
                with open_tensors(source / name) as file:
                    parts[Path(name).stem] = dict(file)
            found = Mark(int(state["epoch"]), int(state["batch"]))
        except (OSError, LookupError, ValueError, AttributeError, TypeError, RecursionError,
                BurnError) as cause:  # fmt: skip
            raise TrainError(
                "Checkpoints.load", "the checkpoint is not whole", got=f"{source.name}: {cause}"
            ) from cause
        return Saved(found, parts, state)

    def load_newest(self, note: Callable[[str], None] = lambda text: None) -> Saved | None:
        """Return the newest checkpoint that is whole, or None if there is none at all.

        Args:
            note: hears of those that are not whole.

        Raises:
            TrainError: there are checkpoints, but none is whole.
        """
        self._bring_back()
        refused: TrainError | None = None
        for mark in reversed(self.marks()):
            try:
                return self.load(mark)
            except TrainError as cause:
                note(f"{self.path(mark).name} is not whole and is passed over: {cause.got}")
                refused = refused or cause
        if refused is not None:
            raise refused
        return None


def set_aside(checkpoints: Path) -> Path:
    """Move what a run left in its directory into `previous` there, and return that.

    Nobody who forgets `resume=True` loses a training; of earlier runs the last one is kept.

    Args:
        checkpoints: the folder of its checkpoints.

    Raises:
        TrainError: the disk refuses.
    """
    directory = checkpoints.parent
    target = directory / "previous"
    try:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(exist_ok=True)
        for name in (checkpoints.name, METRICS_FILE, LOG_FILE):
            with suppress(FileNotFoundError):
                os.replace(directory / name, target / name)
    except OSError as cause:
        raise TrainError(
            "SupervisedTraining.run", "the run that is in the directory could not be set aside",
            got=str(cause), remedy="Pass resume=True, or another directory.",
        ) from cause  # fmt: skip
    return target


class Writer:
    """Runs one job at a time on a thread of its own; an error comes out at the next call.

    Example:
        >>> done = []
        >>> writer = Writer()
        >>> writer.submit(lambda: done.append(1))
        >>> writer.wait(); done
        [1]
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, job: Callable[[], Any]) -> None:
        """Run a job when the one before it is done.

        Args:
            job: is called on the thread.

        Raises:
            BurnError: the job before it failed, with its own traceback.
        """
        self.wait()

        def run() -> None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - raised again in `wait`
                self._error = error

        # A daemon: a second Ctrl-C must not wait for it, and what it leaves is swept up.
        self._thread = threading.Thread(target=run, name="burn-checkpoint", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the last job.

        Raises:
            BurnError: it failed, with its own traceback.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error


def _checksum(state: Mapping[str, Any]) -> int:
    """Return what tells a state from one of which a character is another."""
    whole = {k: v for k, v in state.items() if k != _CHECK}
    return zlib.crc32(json.dumps(whole, sort_keys=True).encode())


def _facts(path: Path) -> list[int]:
    """Return size and checksum of a file."""
    size, check = 0, 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            size += len(piece)
            check = zlib.crc32(piece, check)
    return [size, check]


def _to_disk(path: Path) -> None:
    """Bring a file or folder from the system's caches to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
