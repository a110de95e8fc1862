"""PyTorch's names of tensor attributes: each works, or says what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import burn_tensor


class Names(NamedTuple):
    """What became of a list of names.

    Attributes:
        works: attributes of Tensor.
        answered: name to what is written instead.
        excepted: name to the reason.
        open: names without an answer.
    """

    works: list[str]
    answered: dict[str, str]
    excepted: dict[str, str]
    open: list[str]


def check_names(path: Path) -> Names:
    """Return what became of the names in a file, one a line, `# reason` where excepted."""
    x = burn_tensor.zeros(1)
    found = Names([], {}, {}, [])
    for line in path.read_text().splitlines():
        name, _, reason = (part.strip() for part in line.partition("#"))
        if not name:
            continue
        if reason:
            found.excepted[name] = reason
        elif hasattr(burn_tensor.Tensor, name):
            found.works.append(name)
        else:
            answer = _answer(x, name)
            if answer is None:
                found.open.append(name)
            else:
                found.answered[name] = answer
    return found


def _answer(x: burn_tensor.Tensor, name: str) -> str | None:
    try:
        getattr(x, name)
    except AttributeError as error:
        text = str(error)
        said = re.search(r"no such attribute\. (.+)", text)
        return said[1] if said and not said[1].startswith("Did you mean") else None
    return None
