"""Lazy recording: operations become programs, programs become plans, plans run again."""

from burn_fusion.backend import FusionBackend as FusionBackend
from burn_fusion.segment import Segment as Segment, Value as Value
