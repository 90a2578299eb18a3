"""A bound of the VC dimension of L3M."""

from __future__ import annotations

import math
from numbers import Integral

from loclin.fitting.checks import check_number


def vc_bound(n_regions: int, n_features: int) -> float:
    """Upper bound of the VC dimension of an L3M for two classes
    (Theorem 4.1, derived afresh).

    A prediction is a Boolean function of N = r (r - 1) / 2 + r linear ones: which of two
    partition functions is larger, for each pair, and each region's classifier. Each has
    VC dimension D = n_features + 1, so N of them part m rows in at most
    ``(e m / D)^(D N)`` ways, which is less than 2^m beyond

        2 N log2(e N) D.

    The paper prints (r - 1)^2 / 2 + 1 functions, which is too few: three regions have
    three pairs and three classifiers.

    Parameters
    ----------
    n_regions : int
        At least 2.
    n_features : int
        At least 1.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from loclin import vc_bound
    >>> round(vc_bound(6, 16))
    4166
    """
    check_number("n_regions", n_regions, Integral, low=2, open_high=True)
    check_number("n_features", n_features, Integral, low=1, open_high=True)
    n_functions = n_regions * (n_regions - 1) // 2 + n_regions
    return 2.0 * n_functions * math.log2(math.e * n_functions) * (n_features + 1)
