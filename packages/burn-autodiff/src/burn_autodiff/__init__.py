"""Gradients over any backend: the tape, the backward rules, checkpointing."""

from burn_autodiff.rules.table import rule as rule
from burn_autodiff.tape import Gradients as Gradients, Node as Node
