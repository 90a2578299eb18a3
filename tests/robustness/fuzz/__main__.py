"""Run the cases."""

import sys

from tests.robustness.fuzz import main

sys.exit(min(main(), 1))
