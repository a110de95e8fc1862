"""Metrics of token sequences, over the whole epoch: error rates, BLEU, ROUGE-L."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import Any, Literal

import numpy as np

from burn_std import ArgumentError
from burn_train.metrics.metric import Array, HostMetric, is_empty

Smoothing = Literal["none", "epsilon", "exponential"]


def sequences(values: Any, pad: int | None) -> list[list[int]]:
    """Return token ids per sample, without padding.

    Args:
        values: ids [N, L], or scores [N, C, L] whose largest is taken.
        pad: id that is left out.
    """
    a = np.asarray(values)
    if a.dtype.kind == "f":
        a = a.argmax(1)
    return [[int(t) for t in row if t != pad] for row in a.reshape(len(a), -1)]


def edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many insertions, deletions and changes make b of a.

    Args:
        a: one sequence.
        b: another.

    Example:
        >>> edits("kitten", "sitting")
        3
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


class _Totals(HostMetric):
    """Sums over samples, held as one row each, so that an epoch is no mean over batches."""

    def __init__(self, pad: int | None = None) -> None:
        self.pad = pad
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        found, true = sequences(output, self.pad), sequences(target, self.pad)
        rows = [self._row(f, t) for f, t in zip(found, true, strict=True)]
        self.collect(len(rows), rows=np.array(rows, np.float64).sum(0, keepdims=True))

    def _row(self, found: list[int], true: list[int]) -> Sequence[float]:
        raise NotImplementedError

    def result(self, seen: dict[str, Array]) -> float:
        """Return the value that the sums come to."""
        return self._of(seen["rows"].sum(0))

    def _of(self, sums: Array) -> float:
        raise NotImplementedError


class CharErrorRate(_Totals):
    """Edits that make the predictions the targets, per token of the targets, in percent.

    Args:
        pad: id that is left out.

    Shapes:
        output: ids [N, L] or scores [N, C, L]; target: ids [N, L]

    Example:
        >>> import numpy as np
        >>> m = CharErrorRate(pad=0)
        >>> m.update(np.array([[1, 2, 0]]), np.array([[1, 3, 4]]), 0.0)
        >>> round(m.value(), 3)
        66.667
    """

    name = "cer"
    unit = "%"

    def _row(self, found: list[int], true: list[int]) -> Sequence[float]:
        return edits(found, true), len(true)

    def _of(self, sums: Array) -> float:
        return 100 * float(sums[0] / sums[1]) if sums[1] else float("nan")


class WordErrorRate(CharErrorRate):
    """Edits that make the predictions the targets, per word of the targets, in percent.

    Args:
        pad: id that is left out.
        space: id that parts words; without one every id is a word.

    Shapes:
        output: ids [N, L] or scores [N, C, L]; target: ids [N, L]

    Example:
        >>> import numpy as np
        >>> m = WordErrorRate(space=9)
        >>> m.update(np.array([[1, 2, 9, 3]]), np.array([[1, 2, 9, 4]]), 0.0)
        >>> m.value()
        50.0
    """

    name = "wer"

    def __init__(self, pad: int | None = None, space: int | None = None) -> None:
        self.space = space
        super().__init__(pad)

    def _row(self, found: list[int], true: list[int]) -> Sequence[float]:
        words = self._words(true)
        return edits(self._words(found), words), len(words)

    def _words(self, ids: list[int]) -> list[tuple[int, ...]]:
        if self.space is None:
            return [(i,) for i in ids]
        words: list[list[int]] = [[]]
        for i in ids:
            if i == self.space:
                words.append([])
            else:
                words[-1].append(i)
        return [tuple(w) for w in words if w]


class BLEU(_Totals):
    """Geometric mean of n-gram precisions times a penalty for short outputs, from 0 to 100.

    Counts are summed over the epoch, as the corpus score is defined.

    Args:
        max_n: longest n-gram.
        pad: id that is left out.
        smoothing: what a precision of 0 is taken for: `none` (the score is 0), `epsilon` (0.1
            hits) or `exponential` (1/2, 1/4, ... hits).

    Shapes:
        output: ids [N, L] or scores [N, C, L]; target: ids [N, L]

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> import numpy as np
        >>> m = BLEU(max_n=2)
        >>> m.update(np.array([[1, 2, 3, 4]]), np.array([[1, 2, 3, 5]]), 0.0)
        >>> round(m.value(), 2)
        70.71

    Source: Papineni et al. 2002; smoothing of Chen and Cherry 2014, methods 1 and 3.
    """

    name = "bleu"
    higher_is_better = True

    def __init__(
        self, max_n: int = 4, pad: int | None = None, smoothing: Smoothing = "none"
    ) -> None:
        if max_n < 1 or smoothing not in ("none", "epsilon", "exponential"):
            raise ArgumentError(
                "BLEU", "max_n is positive, smoothing none, epsilon or exponential",
                got=f"{max_n}, {smoothing!r}",
            )  # fmt: skip
        self.max_n = max_n
        self.smoothing: Smoothing = smoothing
        super().__init__(pad)

    def _row(self, found: list[int], true: list[int]) -> Sequence[float]:
        row = [len(found), len(true)]
        for n in range(1, self.max_n + 1):
            a, b = _grams(found, n), _grams(true, n)
            row += [(a & b).total(), a.total()]
        return row

    def _of(self, sums: Array) -> float:
        length, wanted, *counts = sums.tolist()
        logs, halves = 0.0, 0
        for hits, whole in zip(counts[::2], counts[1::2], strict=True):
            if not whole:
                return 0.0
            if not hits:
                if self.smoothing == "none":
                    return 0.0
                halves += 1
                hits = 0.1 if self.smoothing == "epsilon" else 0.5**halves
            logs += log(hits / whole)
        short = min(0.0, 1 - wanted / length)
        return 100 * exp(logs / self.max_n + short)


def _grams(ids: list[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(ids[i : i + n]) for i in range(len(ids) - n + 1))


class RougeL(_Totals):
    """F-measure of the longest common subsequence, mean over samples, in percent.

    Args:
        pad: id that is left out.

    Shapes:
        output: ids [N, L] or scores [N, C, L]; target: ids [N, L]

    Example:
        >>> import numpy as np
        >>> m = RougeL()
        >>> m.update(np.array([[1, 2, 3, 4]]), np.array([[1, 3, 4, 5]]), 0.0)
        >>> m.value()
        75.0

    Source: Lin 2004.
    """

    name = "rouge-l"
    unit = "%"
    higher_is_better = True

    def _row(self, found: list[int], true: list[int]) -> Sequence[float]:
        row = [0] * (len(true) + 1)
        for x in found:
            last = 0
            for j, y in enumerate(true, 1):
                last, row[j] = row[j], last + 1 if x == y else max(row[j], row[j - 1])
        both = len(found) + len(true)
        return (2 * row[-1] / both if both else 1.0), 1.0

    def _of(self, sums: Array) -> float:
        return 100 * float(sums[0] / sums[1])
