"""Tied tensors: one tensor under several names, written once, with the other names as metadata."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from burn_store.json_text import parsed

# One JSON object under one key: alias to the name that is stored.
TIED = "burn.tied"


def with_tied(metadata: Mapping[str, str], aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata with the aliases in it."""
    made = dict(metadata)
    if aliases:
        made[TIED] = json.dumps(dict(aliases))
    return made


def tied_in_metadata(metadata: Mapping[str, str], stored: Collection[str]) -> dict[str, str]:
    """Return alias to stored name, as this project writes it and as `safetensors.torch` does.

    That library writes the removed name as a key of its own with the kept name as its text. What
    does not point from a name that is absent to one that is there is not an alias.
    """
    found = {
        alias: kept for alias, kept in metadata.items() if kept in stored and alias not in stored
    }
    if TIED in metadata:
        own = parsed(metadata[TIED].encode("utf-8", "surrogatepass"), "the list of tied tensors")
        found |= {
            alias: kept for alias, kept in own.items()
            if isinstance(kept, str) and kept in stored and alias not in stored
        }  # fmt: skip
    found.pop(TIED, None)
    return found
