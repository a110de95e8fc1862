"""The loader on a folder of JPEG images beside PyTorch's DataLoader, with the same workers.

    python benchmarks/loader.py [--torch PYTHON] [--workers 2] [--images 600] [--json FILE]

`--torch` names a Python that has PyTorch and Pillow; it runs this file as a peer, in turns with us,
so that both meet the same machine. Both decode, resize to 64 x 64 and stack batches of 32.
Throughput is of the second and later epochs: the workers stay or are started as each library does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

BATCH, SIZE = 32, 64


def make_images(folder: Path, count: int) -> None:
    """Write noise as JPEG images of 320 x 240 in two classes."""
    rng = np.random.default_rng(0)
    for k in range(count):
        path = folder / f"class{k % 2}" / f"{k:05}.jpg"
        path.parent.mkdir(exist_ok=True)
        pixels = rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((320, 240)).save(path, quality=90)


def ours(folder: Path, workers: int, epochs: int) -> list[float]:
    """Return images per second of each epoch but the first."""
    import burn
    from burn.dataset import DataLoader, ImageFolderDataset

    data = ImageFolderDataset(folder, size=(SIZE, SIZE))
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=workers, device=burn.Device.flex())
    rates = []
    for _ in range(epochs):
        start = time.perf_counter()
        seen = sum(labels.shape[0] for _, labels in loader)
        rates.append(seen / (time.perf_counter() - start))
    return rates[1:]


def torchs(folder: Path, workers: int, epochs: int) -> list[float]:
    """Return PyTorch's images per second of each epoch but the first."""
    import torch

    loader = torch.utils.data.DataLoader(
        TorchFolder(folder), BATCH, shuffle=True, num_workers=workers, persistent_workers=True
    )
    rates = []
    for _ in range(epochs):
        start = time.perf_counter()
        seen = sum(labels.shape[0] for _, labels in loader)
        rates.append(seen / (time.perf_counter() - start))
    return rates[1:]


class TorchFolder:
    """What torchvision's ImageFolder does, without torchvision."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.rglob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, k: int) -> tuple[object, int]:
        import torch

        with Image.open(self.files[k]) as image:
            pixels = np.asarray(
                image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
            )
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), int(
            self.files[k].parent.name[-1]
        )


def main() -> None:
    """Measure in turns and print the ratio."""
    parser = argparse.ArgumentParser(description="Loader throughput beside PyTorch's.")
    parser.add_argument("--torch", help="a Python with PyTorch and Pillow")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(torchs(args.peer, args.workers, args.epochs)))
        return
    result: dict[str, list[float]] = {"burn": [], "torch": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_images(folder, args.images)
        for _ in range(args.turns):
            result["burn"] += ours(folder, args.workers, args.epochs)
            if args.torch:
                peer = [args.torch, __file__, "--peer", name, "--workers", str(args.workers)]
                peer += ["--epochs", str(args.epochs)]
                done = subprocess.run(peer, capture_output=True, text=True, check=True)
                result["torch"] += json.loads(done.stdout.splitlines()[-1])
    medians = {k: statistics.median(v) for k, v in result.items() if v}
    for k, v in medians.items():
        print(f"{k:8}{v:10.0f} images/s with {args.workers} workers")
    if "torch" in medians:
        print(f"burn / torch {medians['burn'] / medians['torch']:.2f}")
    if args.json:
        args.json.write_text(json.dumps({"workers": args.workers, **result}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
