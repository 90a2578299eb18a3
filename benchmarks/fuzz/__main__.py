"""Run the cases."""

import sys

from benchmarks.fuzz import main

sys.exit(min(main(), 1))
