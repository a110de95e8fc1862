"""Files in one folder per class: images, sounds, texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn_dataset.dataset import check_index
from burn_std import StoreError, unwritten

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]


class FolderDataset:
    """Items (value, label) of files under `root/class/`; classes count in alphabetical order.

    Args:
        root: folder with one folder per class; files may lie deeper.
        suffixes: endings that count, in lower case.
        transform: value to value, applied on access.

    Attributes:
        classes: names by label.
        files: path and label of each item, sorted.

    Raises:
        StoreError: there is no folder, or no such file in any of its folders.
    """

    def __init__(
        self, root: PathLike, suffixes: Sequence[str],
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.root = Path(root)
        self.transform = transform
        name = type(self).__name__
        if not self.root.is_dir():
            raise StoreError(name, "needs a folder with a folder per class", got=self.root.name)
        self.classes = sorted(p.name for p in self.root.iterdir() if p.is_dir())
        wanted = tuple(suffixes)
        self.files: list[tuple[Path, int]] = [
            (path, label)
            for label, kind in enumerate(self.classes)
            for path in sorted((self.root / kind).rglob("*"))
            if path.suffix.lower() in wanted and path.is_file()
        ]
        if not self.files:
            raise StoreError(
                name, "needs files in the folders of the classes",
                got=f"no file that ends in {', '.join(wanted)} under {self.root.name}",
            )  # fmt: skip

    def read(self, path: Path) -> Any:
        """Return the value of a file.

        Args:
            path: of the file.
        """
        raise unwritten(self, "read")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.files[check_index(index, len(self), type(self).__name__)]
        value = self.read(path)
        return (value if self.transform is None else self.transform(value)), label


class ImageFolderDataset(FolderDataset):
    """Images in one folder per class (the extra `image` brings Pillow).

    Args:
        root: folder with one folder per class.
        suffixes: endings that count.
        mode: Pillow's word for the channels: `RGB`, `L`, `RGBA`.
        size: (height, width) to which images are brought, or None.
        transform: array to array, applied on access.

    Shapes:
        an item: ([C, H, W] of uint8, label)

    Raises:
        StoreError: there is nothing to read, Pillow is missing, or on access a file is no image.
    """

    def __init__(
        self, root: PathLike, suffixes: Sequence[str] = (".bmp", ".jpg", ".jpeg", ".png", ".webp"),
        *, mode: str = "RGB", size: tuple[int, int] | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(root, suffixes, transform)
        self.mode = mode
        self.size = size
        pillow()

    def read(self, path: Path) -> Array:
        """Return an image as an array."""
        return read_image(path, self.mode, self.size)


def read_image(path: PathLike, mode: str = "RGB", size: tuple[int, int] | None = None) -> Array:
    """Return an image as an array [C, H, W] of uint8.

    Args:
        path: of the file.
        mode: Pillow's word for the channels.
        size: (height, width) to which it is brought, or None.

    Raises:
        StoreError: Pillow is missing, or the file is no image.
    """
    image_module = pillow()
    try:
        with image_module.open(path) as opened:
            image = opened.convert(mode)
        if size is not None:
            image = image.resize((size[1], size[0]), image_module.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError) as cause:
        raise StoreError(
            "read_image", "the file is no image", got=f"{Path(path).name}: {cause}"
        ) from cause
    a = np.array(image)
    return a[None] if a.ndim == 2 else np.ascontiguousarray(a.transpose(2, 0, 1))


def pillow() -> Any:
    """Return Pillow's module of images.

    Raises:
        StoreError: it is not installed.
    """
    try:
        from PIL import Image
    except ImportError as cause:
        raise StoreError(
            "read_image", "needs the package Pillow",
            remedy="Install it: uv sync --inexact --package burn-dataset --extra image.",
        ) from cause  # fmt: skip
    return Image


class AudioFolderDataset(FolderDataset):
    """Sounds in one folder per class (the extra `audio` brings soundfile).

    Args:
        root: folder with one folder per class.
        suffixes: endings that count.
        sample_rate: in hertz, that all must have; not checked if None.
        samples: length to which sounds are cut, or filled up with silence; as they are if None.
        transform: array to array, applied on access.

    Shapes:
        an item: ([C, L] of float32 in [-1, 1], label)

    Raises:
        StoreError: there is nothing to read, soundfile is missing, or on access a file is no sound
            or has another rate.
    """

    def __init__(
        self, root: PathLike, suffixes: Sequence[str] = (".wav", ".flac", ".ogg"), *,
        sample_rate: int | None = None, samples: int | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(root, suffixes, transform)
        self.sample_rate = sample_rate
        self.samples = samples
        _soundfile()

    def read(self, path: Path) -> Array:
        """Return a sound as an array."""
        module = _soundfile()
        try:
            data, rate = module.read(path, dtype="float32", always_2d=True)
        except (OSError, RuntimeError, ValueError, TypeError) as cause:
            raise StoreError(
                "AudioFolderDataset", "the file is no sound", got=f"{path.name}: {cause}"
            ) from cause
        if self.sample_rate is not None and rate != self.sample_rate:
            raise StoreError(
                "AudioFolderDataset", f"sounds have {self.sample_rate} samples per second",
                got=f"{rate} in {path.name}",
            )  # fmt: skip
        sound: Array = np.ascontiguousarray(data.T)
        if self.samples is None:
            return sound
        out = np.zeros((len(sound), self.samples), np.float32)
        kept = min(self.samples, sound.shape[1])
        out[:, :kept] = sound[:, :kept]
        return out


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as cause:  # OSError: without the library it binds
        raise StoreError(
            "AudioFolderDataset", "needs the package soundfile",
            remedy="Install it: uv sync --inexact --package burn-dataset --extra audio.",
        ) from cause  # fmt: skip
    return soundfile


class TextFolderDataset(FolderDataset):
    """Texts in one folder per class.

    Args:
        root: folder with one folder per class.
        suffixes: endings that count.
        encoding: of the files.
        transform: text to anything, applied on access.

    Raises:
        StoreError: there is nothing to read, or on access a file has another encoding.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for kind in ("good", "bad"):
        ...         pathlib.Path(folder, kind).mkdir()
        ...         _ = pathlib.Path(folder, kind, "1.txt").write_text(f"a {kind} day")
        ...     data = TextFolderDataset(folder)
        ...     data.classes, data[0]
        (['bad', 'good'], ('a bad day', 0))
    """

    def __init__(
        self, root: PathLike, suffixes: Sequence[str] = (".txt",), *, encoding: str = "utf-8",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(root, suffixes, transform)
        self.encoding = encoding

    def read(self, path: Path) -> str:
        """Return a text."""
        try:
            return path.read_text(encoding=self.encoding)
        except (OSError, UnicodeDecodeError) as cause:
            raise StoreError(
                "TextFolderDataset", f"the file is text in {self.encoding}",
                got=f"{path.name}: {cause}",
            ) from cause  # fmt: skip
