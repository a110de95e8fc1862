"""Sequences of different lengths: everything of burn_nn.rnn."""

from burn_nn.rnn import *  # noqa: F403
from burn_nn.rnn import __all__ as __all__
