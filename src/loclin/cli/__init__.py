"""The ``loclin`` command."""

from loclin.cli._app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app()
