"""Checkpoints: one folder each, complete or absent, and resuming from the newest."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from burn_core import Module
from burn_optim import Optimizer
from burn_std import BurnError, TrainError
from burn_store import load, open as open_tensors, save, save_tensors

_NAME = re.compile(r"^epoch-(\d+)$")


class Checkpoints:
    """Numbered checkpoints in a folder.

    Args:
        directory: made if missing.
        keep: how many of the newest stay.

    Example:
        >>> import tempfile
        >>> Checkpoints(tempfile.mkdtemp()).latest() is None
        True
    """

    def __init__(self, directory: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise TrainError("Checkpoints", "keep must be positive", got=keep)
        self.directory = Path(directory)
        self.keep = keep

    def epochs(self) -> list[int]:
        """Return the epochs that have a checkpoint, ascending."""
        if not self.directory.is_dir():
            return []
        found = (_NAME.match(p.name) for p in self.directory.iterdir() if p.is_dir())
        return sorted(int(m[1]) for m in found if m)

    def latest(self) -> int | None:
        """Return the newest epoch with a checkpoint, or None."""
        epochs = self.epochs()
        return epochs[-1] if epochs else None

    def path(self, epoch: int) -> Path:
        """Return the folder of an epoch's checkpoint."""
        return self.directory / f"epoch-{epoch}"

    def save(self, epoch: int, model: Module, optimizer: Optimizer, state: dict[str, Any]) -> Path:
        """Write model, optimizer and state; the folder appears under its name once it is whole.

        Raises:
            TrainError: the disk refuses; older checkpoints stay.
        """
        target = self.path(epoch)
        temporary = self.directory / f".epoch-{epoch}.{os.getpid()}.tmp"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            save(model, temporary / "model.safetensors")
            save_tensors(optimizer.state_dict(model), temporary / "optimizer.safetensors")
            (temporary / "state.json").write_text(
                json.dumps({"epoch": epoch, **state}, indent=2), encoding="utf-8"
            )
            if target.exists():
                shutil.rmtree(target)
            os.replace(temporary, target)
        except (OSError, BurnError) as cause:
            raise TrainError(
                "Checkpoints.save", "the checkpoint could not be written", got=str(cause)
            ) from cause
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        for old in self.epochs()[: -self.keep]:
            shutil.rmtree(self.path(old), ignore_errors=True)
        return target

    def load(self, epoch: int, model: Module, optimizer: Optimizer) -> dict[str, Any]:
        """Restore model and optimizer and return the state.

        Raises:
            TrainError: there is no whole checkpoint of that epoch.
        """
        source = self.path(epoch)
        try:
            state: dict[str, Any] = json.loads((source / "state.json").read_text(encoding="utf-8"))
            load(model, source / "model.safetensors")
            with open_tensors(source / "optimizer.safetensors") as file:
                optimizer.load_state_dict(model, dict(file))
        except (OSError, ValueError, BurnError) as cause:
            raise TrainError(
                "Checkpoints.load", "the checkpoint is not whole", got=f"{source.name}: {cause}"
            ) from cause
        return state
