"""Programs that try to break loclin, for longer than a test may; pytest collects none of them.

``python -m tests.robustness.NAME`` from the repository root, ``--help`` for what each does:

- `fuzz`: estimators, data and calls at random;
- `hostile`: files, names, options and streams of the command line that mean harm;
- `forged`: files of models, changed at random;
- `interrupts`: signals at random moments;
- `killed`: fits and streams that are killed and gone on with;
- `cluster`: workers of a cluster that are killed, stopped and starved while a fit runs;
- `hosts`: three hosts, one of which is cut off.
"""
