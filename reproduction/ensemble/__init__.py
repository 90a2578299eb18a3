"""The ensemble on official splits."""
