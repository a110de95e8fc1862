"""What stands behind each operation, and whether anything is missing: `nox -s audit`."""

from burn_testing.audit.operations import Line as Line, audit as audit
from burn_testing.audit.torch_names import check_names as check_names
