"""``python -m benchmarks.limits``."""

from benchmarks.limits import main

main()
