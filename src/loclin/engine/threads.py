"""How many threads matrix products, and k-means, get while a model trains."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Multiply-adds in one batch's product below which a second BLAS thread costs more than it brings.
_WORTH_A_THREAD = 1e7


@cache
def _controller() -> ThreadpoolController:
    """Find the thread pools once; looking for them takes milliseconds."""
    return ThreadpoolController()


def threads_for(products_per_batch: float) -> AbstractContextManager[Any]:
    """Keep small matrix products on one thread; leave large ones as the user set them.

    Threads wait for one another after each product. Where other programs have the cores too, that
    takes tens of times as long as a small product itself.
    """
    if products_per_batch < _WORTH_A_THREAD:
        return _controller().limit(limits=1)
    return nullcontext()
