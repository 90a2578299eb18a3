"""Hostile files, names, options and streams: what the command line does with each.

``python -m tests.robustness.hostile``, or ``--only npz`` for the cases whose name has "npz"

Every case is a run of ``loclin`` in a process of its own, with 30 s of processor time (which leaves
out other programs' turns; 150 s by the clock) and 1 GB to do its work. Good is an end with an
expected status, no traceback, no signal, and at most one line on the standard error; the last lines
count what is not good. Cases of streams, locales and models start a new Python; the others are
forked from one that has the command line loaded. For POSIX systems.
"""
