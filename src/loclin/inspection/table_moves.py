"""What may move in a row of a table: numbers, dates, flags and categories."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from loclin.inspection.moves import Floats, Moves, Steps
from loclin.tables.cells import Cells, frame_of, pandas
from loclin.tables.kinds import MISSING, OTHER, values_of
from loclin.tables.numbers import MARKS

_DAY = 86_400  # seconds
_PAIRS = ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("0", "1")
_TIMES = datetime.timedelta, np.timedelta64


class TableMoves(Moves):
    """Moves of a row of a table, in the columns of the table.

    Numbers and dates move as numbers, flags and categories to another value. Texts, columns
    that are left out, and gaps stay.

    Parameters
    ----------
    model : Pipeline
    steps : Steps
        With a `TableEncoder`.
    x : DataFrame or Series
        One row.
    scale : mapping, array-like or None
    """

    def __init__(self, model: Any, steps: Steps, x: Any, scale: Any) -> None:
        is_series = np.ndim(x) == 1 and hasattr(x, "to_frame")
        self._given = frame_of(x.to_frame().T if is_series else x)
        if len(self._given) != 1:
            raise ValueError(f"x has {len(self._given)} rows; give one.")
        self._cells = {name: self._given[name].iloc[0] for name in self._given.columns}
        encoder = steps.encoder
        self._shown = list(encoder.get_feature_names_out())
        self._origins = list(encoder.origins_)
        self._seen = np.asarray(encoder.transform(self._given), np.float64)[0]
        self._features = {name: encoder.origins_.index(name) for name in encoder.origins_}
        self.options: dict[str, list[Any]] = {}
        names, start = [], []
        for name in dict.fromkeys(encoder.origins_):
            kind = encoder.kinds_[name]
            if kind == "text":
                continue
            if kind in ("flag", "category"):
                self.options[name] = self._options_of(name, kind)
            names.append(name)
            number = 0.0 if name in self.options else self._seen[self._features[name]]
            start.append(np.nan if self._is_gap(name) else number)
        places = [self._features[name] for name in names]
        super().__init__(model, steps, names, np.array(start), places)
        self.may_move &= np.isfinite(self.start)
        self.start = np.where(self.may_move, self.start, 0.0)
        self._grain = np.array([self._grain_of(k) for k in range(len(names))])
        self.is_choice = np.array([name in self.options for name in names], bool)
        self._is_plain = ~self.is_choice & (self._grain == 0)
        own = np.ones(len(names))
        of_features = np.broadcast_to(
            steps.units(self.description), len(encoder.origins_)
        )
        for k, name in enumerate(names):
            if name not in self.options:
                own[k] = of_features[self._features[name]]
        self.set_units(scale, own)

    def rows(self, Z: Floats) -> Any:
        """Return what the model takes, of the numbers of some rows."""
        frame = self._given.iloc[np.zeros(len(Z), int)].reset_index(drop=True)
        new = {
            self.names[k]: Z[:, k]
            if self._is_plain[k]
            else [self._cell(int(k), z) for z in Z]
            for k in np.flatnonzero((self.start != Z).any(axis=0))
        }
        return frame.assign(**new)

    def finished(self, z: Floats) -> Any:
        """Return a row like the one given."""
        row = self._given.copy()
        for k in np.flatnonzero(z != self.start):
            name = self.names[k]
            column = pandas().Series([self._cell(int(k), z)], index=row.index)
            before = row[name].dtype
            if isinstance(before, pandas().CategoricalDtype):
                known = column.iloc[0] in before.categories
                column = column.astype(before) if known else column.astype(object)
            elif self.is_choice[k] or before.kind in "mM":
                column = column.astype(before)
            row[name] = column
        return row

    def for_model(self, row: Any) -> Any:
        """Return a finished row as the model takes it."""
        return row

    def written(self, Z: Floats) -> Floats:
        """Return the numbers of rows as they can be written: times by whole steps."""
        grain = np.where(self._grain > 0, self._grain, 1.0)
        whole = self.start + np.round((Z - self.start) / grain) * grain
        return np.where(self._grain > 0, whole, Z)

    def value(self, name: int, z: Floats) -> Any:
        """Return the value of a column."""
        cell = self._cell(name, z)
        return cell.item() if isinstance(cell, np.generic) else cell

    def limits_of(self, name: int, limits: Any) -> tuple[float | None, float | None]:
        """Return limits as numbers; those of a category are the values it may take."""
        column = self.names[name]
        if column in self.options:
            allowed = set(map(str, limits))
            here, *others = self.options[column]
            self.options[column] = [here, *(one for one in others if str(one) in allowed)]
            return None, None
        low, high = limits
        if self.steps.encoder.kinds_[column] == "date":
            low, high = (None if one is None else _read_date(one) for one in (low, high))
        return low, high

    def n_options(self, name: int) -> int:
        """Return how many values a choice has."""
        return len(self.options[self.names[name]])

    def _options_of(self, name: str, kind: str) -> list[Any]:
        """Return the values of a flag or a category that the model knows, its own first."""
        cell = self._cells[name]
        if self._is_gap(name):
            return [cell]
        if kind == "flag":
            return [cell, _other_flag(cell, self._seen[self._features[name]])]
        start, own = f"{name} = ", _text_of(cell)
        texts = [
            feature.removeprefix(start)
            for feature, origin in zip(self._shown, self._origins, strict=True)
            if origin == name and feature.startswith(start)
        ]
        others = [
            _like(cell, text) for text in texts if text not in (own, MISSING, OTHER)
        ]
        return [cell, *(one for one in others if one is not None)]

    def _is_gap(self, name: str) -> bool:
        """Tell whether there is no value."""
        cell, missing = self._cells[name], f"{name} {MISSING}"
        if missing in self._shown and self._seen[self._shown.index(missing)]:
            return True
        if isinstance(cell, str):
            return cell.strip().lower() in {"", *MARKS}
        return bool(pandas().isna(cell))

    def _grain_of(self, k: int) -> float:
        """Return the least step of a time: a day, a second or less; 0 of numbers."""
        whole = self.start[k] % 1 == 0
        if self.steps.encoder.kinds_[self.names[k]] == "date":
            return 1.0 if whole else 1 / _DAY
        if isinstance(self._cells[self.names[k]], _TIMES):
            return 1.0 if whole else 1e-6
        return 0.0

    def _cell(self, k: int, z: Floats) -> Any:
        """Return the cell of a column: the one given, where the number has not moved."""
        name = self.names[k]
        cell = self._cells[name]
        if z[k] == self.start[k]:
            return cell
        if name in self.options:
            return self.options[name][int(z[k])]
        if self.steps.encoder.kinds_[name] == "date":
            return _date_like(cell, float(z[k]))
        if isinstance(cell, _TIMES):
            return pandas().Timedelta(float(z[k]), "s")
        return float(z[k])


def _text_of(cell: Any) -> str:
    """Return a category as its feature's name has it: whole numbers without a point."""
    is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return str(int(cell)) if is_whole else str(cell).strip()


def _like(cell: Any, text: str) -> Any:
    """Return the value of a category, of the type of another; None if it has none.

    >>> _like(2.0, "3"), _like("a", "b"), _like(2, "b")
    (3.0, 'b', None)
    """
    if isinstance(cell, str):
        return text
    try:
        value = type(cell)(text)
    except (TypeError, ValueError):
        return None
    return value if _text_of(value) == text else None


def _other_flag(cell: Any, number: float) -> Any:
    """Return true for false, written as the other one is, if that is known.

    >>> _other_flag(True, 1), _other_flag("FALSE", 0), _other_flag(0, 0), _other_flag("y", 1)
    (False, 'TRUE', 1, 'n')
    """
    if isinstance(cell, bool | np.bool_):
        return not cell
    if not isinstance(cell, str):
        return type(cell)(1 - number)
    text = cell.strip()
    pair = next((one for one in _PAIRS if text.lower() in one), _PAIRS[0])
    other = pair[int(number < 0.5)]
    return next(
        (way(other) for way in (str.upper, str.title) if way(text) == text), other
    )


def _read_date(value: Any) -> float:
    return float(values_of("date", Cells(pandas().Series([value])), "")[0][0])


def _date_like(cell: Any, days: float) -> Any:
    """Return a date in days since 1970, of the type of another."""
    pd = pandas()
    if isinstance(cell, str) and len(cell.strip()) == len("2024-05-31"):
        return pd.Timestamp(round(days), unit="D").strftime("%Y-%m-%d")
    stamp = pd.Timestamp(round(days * _DAY), unit="s")
    if isinstance(cell, str):
        return stamp.isoformat()
    if isinstance(cell, pd.Period):
        return pd.Period(stamp, cell.freq)
    zone = getattr(cell, "tzinfo", None)
    stamp = stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)
    if isinstance(cell, pd.Timestamp | np.datetime64):
        return stamp
    moment = stamp.to_pydatetime()
    return moment if isinstance(cell, datetime.datetime) else moment.date()
