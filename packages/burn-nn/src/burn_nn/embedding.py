"""Tables of vectors."""

from __future__ import annotations

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError
from burn_tensor import Tensor, functional as F


class _Table(Module):
    """What the embeddings share: the table, a row of padding."""

    def _fill(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None,
        sparse: bool, device: Device | None, dtype: DType | None,
    ) -> None:  # fmt: skip
        if sparse:
            raise ArgumentError(
                type(self).__name__, "sparse can only be False", got=sparse,
                remedy="Leave it out: gradients are dense, and an optimizer updates every row.",
            )  # fmt: skip
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ArgumentError(
                    type(self).__name__, f"padding_idx must be in [-{num_embeddings}, "
                    f"{num_embeddings})", got=padding_idx,
                )  # fmt: skip
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(init.fresh((num_embeddings, embedding_dim), dtype, device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the table from N(0, 1), the row of padding with 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            value = self.weight.detach()
            value[self.padding_idx] = 0.0
            self.weight.set(value)


class Embedding(_Table):
    """Rows of a learned table by index.

    Args:
        num_embeddings: rows.
        embedding_dim: size of a row.
        padding_idx: row that starts as 0 and gets no gradient.
        max_norm: rows that are looked up are scaled to at most this norm, and stay so.
        norm_type: order of that norm.
        scale_grad_by_freq: divide the gradient of a row by how often it was looked up.
        sparse: only False: gradients are dense.
        device: where the table lives; the default device if None.
        dtype: of the table; the device's default float if None.

    Shapes:
        input: [*] of integers; returns [*, embedding_dim]
        weight: [num_embeddings, embedding_dim]

    Raises:
        ArgumentError: padding_idx is out of range, or sparse is set.
        IndexRangeError: an index is out of range.

    Example:
        >>> burn.nn.Embedding(10, 4)(burn.tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self._fill(num_embeddings, embedding_dim, padding_idx, sparse, device, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """Return an embedding of a given table.

        Args:
            embeddings: the table, [rows, size].
            freeze: the table is not trained.
            padding_idx: as in the constructor; the given row is kept.
            max_norm: as in the constructor.
            norm_type: as in the constructor.
            scale_grad_by_freq: as in the constructor.
            sparse: as in the constructor.

        Raises:
            ShapeError: the table is no matrix.

        Example:
            >>> table = burn.tensor([[1.0], [2.0]])
            >>> burn.nn.Embedding.from_pretrained(table)(burn.tensor([1])).tolist()
            [[2.0]]
        """
        if len(embeddings.shape) != 2:
            raise ShapeError("Embedding.from_pretrained", "needs a matrix", got=embeddings.shape)
        rows, size = embeddings.shape
        made = cls(
            rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            embeddings.device, embeddings.dtype,
        )  # fmt: skip
        made.weight.set(embeddings)
        made.weight.set_requires_grad(not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows at the indices."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows, without the rows in between.

    Args:
        num_embeddings: rows.
        embedding_dim: size of a row.
        max_norm: rows that are looked up are scaled to at most this norm, and stay so.
        norm_type: order of that norm.
        scale_grad_by_freq: divide the gradient of a row by how often it was looked up.
        mode: sum, mean or max.
        sparse: only False: gradients are dense.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: row that counts in no bag and gets no gradient.
        device: where the table lives; the default device if None.
        dtype: of the table; the device's default float if None.

    Shapes:
        input: [B, N], or [N] with offsets [B]; returns [B, embedding_dim]

    Raises:
        ArgumentError: padding_idx is out of range, offsets are missing, or sparse is set.

    Example:
        >>> bag = burn.nn.EmbeddingBag(10, 4)
        >>> bag(burn.tensor([1, 2, 4]), burn.tensor([0, 2])).shape
        (2, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self._fill(num_embeddings, embedding_dim, padding_idx, sparse, device, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Return one row per bag.

        Args:
            input: indices.
            offsets: where each bag begins in an input of one dim.
            per_sample_weights: factor of every row, mode sum only.
        """
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, False, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip
