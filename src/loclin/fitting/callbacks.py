"""scikit-learn's callback API where it exists (1.9 and later),
and its silent twin elsewhere.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class _NoCallbacks:
        """Takes the calls of a callback context and does nothing."""

        def subcontext(self, *args: Any, **kwargs: Any) -> _NoCallbacks:
            return self

        def call_on_fit_task_begin(self, **kwargs: Any) -> _NoCallbacks:
            return self

        def call_on_fit_task_end(self, **kwargs: Any) -> bool:
            return False

        def propagate_callback_context(
            self, estimator: Any
        ) -> AbstractContextManager[None]:
            return nullcontext()

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for ``sklearn.callback.CallbackSupportMixin``;
        has no ``set_callbacks``.
        """

        def _init_callback_context(self, *args: Any, **kwargs: Any) -> _NoCallbacks:
            return _NoCallbacks()

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "with_callbacks"]
