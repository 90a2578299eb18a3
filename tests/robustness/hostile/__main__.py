"""``python -m tests.robustness.hostile``."""

import sys

from tests.robustness.hostile.runner import FAULTS, main

found = main()
sys.exit(int(any(found[fault] for fault in FAULTS)))
