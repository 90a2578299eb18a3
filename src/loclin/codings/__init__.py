"""Codings: how much each anchor counts at each row, as scikit-learn transformers.

`transform` gives a CSR matrix (n_samples, m), one column an anchor (or anchor plane). The
codings by anchors give weights that sum to one: soft assignment, inverse distances and
least squares (LLC) over the k nearest anchors, and local coordinates (LCC) over all of
them. `TangentCoding` adds the coordinates along the tangents of each anchor;
`OrthogonalCoding` weighs planes.
"""

from loclin.codings._lcc import LocalCoordinateCoding
from loclin.codings._nearest import InverseDistanceCoding, LLCCoding, SoftAssignmentCoding
from loclin.codings._planes import OrthogonalCoding
from loclin.codings._tangent import TangentCoding

__all__ = [
    "InverseDistanceCoding",
    "LLCCoding",
    "LocalCoordinateCoding",
    "OrthogonalCoding",
    "SoftAssignmentCoding",
    "TangentCoding",
]
