"""Let the trained model go on with a text.

python examples/text_generation/generate.py [PROMPT] [--length 400] [--temperature 0.8]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from model import CharTransformer
from text import Alphabet

import burn
from burn import Device, store
from burn.core import ModuleConfig


def write(
    model: CharTransformer, alphabet: Alphabet, prompt: str, length: int, temperature: float
) -> None:
    """Print a prompt and what the model writes after it, character by character."""
    device = model.head.weight.device
    print(prompt, end="", flush=True)
    start = burn.tensor(alphabet.encode(prompt)[None], device=device)
    for number in model.generate(start, length, temperature):
        print(alphabet.characters[number], end="", flush=True)
    print()


def main() -> None:
    """Load the model from its files alone, then write."""
    parser = argparse.ArgumentParser(description="Generate text.")
    parser.add_argument("prompt", nargs="?", default="The ")
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.8, help="0 takes the likeliest")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "runs")
    args = parser.parse_args()
    if not args.prompt:
        parser.error("the prompt needs at least one character")
    if not (args.folder / "model.json").is_file():
        parser.error(f"no model in {args.folder}; run train.py first")

    burn.manual_seed(args.seed)
    model: CharTransformer = ModuleConfig.load(args.folder / "model.json").init(Device.default())
    store.load(model, args.folder / "model.safetensors")
    alphabet = Alphabet.load(args.folder / "alphabet.json")
    write(model.valid(), alphabet, args.prompt, args.length, args.temperature)


if __name__ == "__main__":
    main()
