"""Fit one model to rows that lie in parts: in files, in processes, or on many machines.

`fit` takes parts of the rows, each of which stays where it is. What travels is the model.
`fit_members` fits a classifier to each part alone, and returns their ensemble.
An `Executor` says how to run a function on all parts: in threads or in processes of this
machine, or on an engine for clusters. `loclin.dask` has one for Dask.
"""

from loclin.cluster.executors import Executor
from loclin.cluster.members import fit_members
from loclin.cluster.rounds import RowsLeftOutWarning
from loclin.cluster.training import fit

__all__ = ["Executor", "RowsLeftOutWarning", "fit", "fit_members"]
