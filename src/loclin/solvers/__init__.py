"""Solvers: one algorithm a file, arrays in, arrays out. Files ending in ``_fast`` are compiled."""
