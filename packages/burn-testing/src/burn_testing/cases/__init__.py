"""The case files: operator calls whose answers PyTorch gave, read and run on any backend."""

from burn_testing.cases.read import Case as Case, Given as Given, load as load, names as names
from burn_testing.cases.run import run_case as run_case
