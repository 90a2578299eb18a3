"""Stub."""

PANELS: list = []
