"""Stub."""

ENTRIES: list = []
