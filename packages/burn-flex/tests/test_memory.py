import platform
import subprocess
import sys

import pytest

LOOP = """
import resource
from burn_flex.plugin import plugin
import numpy as np

plugin.create(0)
weights = np.ones((384, 384), np.float32)

def step():
    kept = [weights * 2, weights + 1]
    return kept[0] + kept[1]

for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc maps such arrays anew")
def test_memory_of_results_is_not_faulted_in_again():
    found = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, text=True, check=True)
    # Without what flex teaches the allocator there are 432 per step.
    assert int(found.stdout) < 1000
