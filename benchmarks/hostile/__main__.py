"""``python -m benchmarks.hostile``."""

import sys

from benchmarks.hostile.runner import FAULTS, main

found = main()
sys.exit(int(any(found[fault] for fault in FAULTS)))
