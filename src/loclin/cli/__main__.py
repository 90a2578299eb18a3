"""``python -m loclin.cli``."""

from loclin.cli import main

main()
