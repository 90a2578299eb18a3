"""The ``loclin`` command, which needs ``loclin[cli]``."""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what to install where a
    package of its extra is missing.
    """
    missing = [
        name
        for name in ("typer", "rich", "pandas", "duckdb", "jinja2")
        if find_spec(name) is None
    ]
    if missing:
        print(
            f'loclin: the command needs {", ".join(missing)}: pip install "loclin[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    from loclin.cli._app import app
    from loclin.cli._terminal import run

    sys.exit(run(app))
