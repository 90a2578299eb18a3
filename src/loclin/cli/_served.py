"""The commands ``loclin predict``, ``explain`` and ``info``, which read a saved model."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import MaxAbsScaler

from loclin.cli._arrays import features, is_table
from loclin.cli._errors import InputError, listed
from loclin.cli._fit import figures_line
from loclin.cli._outputs import check_outputs, replace_file
from loclin.cli._saved import About, encoder_of, load_model
from loclin.cli._terminal import say
from loclin.forest import ForestClassifier
from loclin.inspection.text import value_text
from loclin.io import replaced
from loclin.tables import read_parts

if TYPE_CHECKING:
    from pandas import DataFrame

    from loclin.inspection import LocalModelDisplay

__all__ = ["explain_row", "predict_rows", "show_info"]

ROWS_AT_ONCE = 50_000  # of arrays
OF_FORESTS = (
    "Forests are a part of this ensemble. Their part of the score is no column's: it is in the "
    "row's model at the reference."
)


def predict_rows(
    file: Path,
    data: str,
    out: Path,
    *,
    header: bool,
    proba: bool,
    keep: Sequence[str],
    max_gb: float,
    as_json: bool,
) -> None:
    """Write a line for each row: its class, and with ``proba`` the probabilities of all.

    Columns to keep stand before them.
    """
    model, about = load_model(file)
    if sys.stdout is None and str(out) == "-":
        raise InputError("the standard output is closed; write a file with --out")
    check_outputs({"out": out}, [data, str(file)])
    if proba and not hasattr(model, "predict_proba"):
        raise InputError(
            f"{about.model} in {file} has no probabilities; leave out --proba"
        )
    found: Counter[tuple[str, str]] = Counter()
    extra: list[str] = []
    n_rows = 0
    encoder = encoder_of(model)
    if keep and encoder is None:
        raise InputError("--keep is for tables; leave it out")
    with _opened(out) as to:
        for number, rows in enumerate(_parts(model, about, data, header, max_gb)):
            if encoder is None:
                table = _predicted(model, about, rows, proba)
            else:
                extra = [name for name in rows.columns if name not in encoder.kinds_]
                features, notes = encoder.transform_and_note(rows)
                found.update(notes)
                table = _predicted(model[1:], about, features, proba)
                missing = [name for name in keep if name not in rows.columns]
                if missing:
                    raise InputError(f"--keep: {data} has no column {listed(missing)}")
                for place, name in enumerate(keep):
                    table.insert(
                        place, name, rows[name].to_numpy(), allow_duplicates=True
                    )
            _write(table, to, as_json=as_json, names=number == 0)
            n_rows += len(table)
    if str(out) != "-":
        say(f"wrote {n_rows:,} rows to {out}", error=True)
    others = [name for name in extra if name not in (about.target, *keep)]
    if others:
        say(f"note: columns {listed(others)} are not used", error=True)
    for (name, what), count in found.items():
        say(f"note: column '{name}': {count:,} {what}", error=True)


def _write(table: DataFrame, to: TextIO, *, as_json: bool, names: bool) -> None:
    """Write rows as CSV, or as one JSON object a row."""
    if not as_json:
        form = {"index": False, "lineterminator": "\n", "float_format": "%.6g"}
        table.to_csv(to, header=names, **form)  # type: ignore[call-overload]
    elif len(table):  # of no rows, pandas writes an empty line
        form = {"orient": "records", "lines": True, "double_precision": 15}
        to.write(table.to_json(**form, force_ascii=False))  # type: ignore[call-overload]


@contextmanager
def _opened(out: Path) -> Iterator[TextIO]:
    """Open what is written to; a file is there at the end, whole, or not at all."""
    if str(out) == "-":
        yield sys.stdout
    elif out.exists() and not out.is_file():
        with open(out, "w", encoding="utf-8") as device:
            yield device
    else:
        with replaced(out) as file:
            text = TextIOWrapper(file, "utf-8", newline="")
            yield text
            text.detach()  # the file is not this function's to close


def _parts(
    model: Any, about: About, data: str, header: bool, max_gb: float
) -> Iterator[Any]:
    """Yield rows part by part, as the model takes them."""
    encoder = encoder_of(model)
    if is_table(data) != (encoder is not None):
        fitted = "a table" if encoder is not None else "arrays"
        raise InputError(f"{data}: the model was fitted to {fitted}; give rows alike")
    if encoder is not None:
        yield from read_parts(data, header=header, max_bytes=max_gb * 1e9)
        return
    is_sparse = isinstance(model[0], MaxAbsScaler)
    shape = (0, model.n_features_in_)
    like = csr_array(shape) if is_sparse else np.empty(shape)
    X = features(data, max_gb * 1e9, like)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        yield X[first : first + ROWS_AT_ONCE]


def _predicted(model: Any, about: About, rows: Any, proba: bool) -> Any:
    import pandas as pd

    name, n_rows = f"predicted {about.target}", rows.shape[0]
    if not proba:
        return pd.DataFrame({name: model.predict(rows) if n_rows else []})
    shape = (0, len(model.classes_))
    shares = model.predict_proba(rows) if n_rows else np.empty(shape)
    labels = [str(label) for label in model.classes_]
    names = [f"{label} (probability)" if label == name else label for label in labels]
    table = pd.DataFrame(shares, columns=names)
    best = model.classes_[shares.argmax(axis=1)] if n_rows else []
    table.insert(0, name, best, allow_duplicates=True)
    return table


def explain_row(
    file: Path,
    data: str,
    row: int,
    reference: int | None,
    *,
    header: bool,
    max_gb: float,
    as_json: bool,
    outputs: Mapping[str, Path | None],
) -> None:
    """Say what each column adds to the score of a row, and draw it where that is asked for."""
    from loclin.inspection import LocalModelDisplay, explanation_page

    model, about = load_model(file)
    check_outputs(outputs, [data, str(file)])
    wanted = [row] if reference is None else [row, reference]
    held = _rows(_parts(model, about, data, header, max_gb), wanted, data)
    against = None if reference is None else held[1]
    display = LocalModelDisplay.from_estimator(model, held[0], reference=against)
    shares = model.predict_proba(held[0])[0] if hasattr(model, "predict_proba") else None
    share = (
        None if shares is None else float(shares[model.classes_ == display.classes[0]][0])
    )
    members = getattr(model[-1], "members_", [])
    has_forest = any(isinstance(one, ForestClassifier) for one in members)
    notes = [OF_FORESTS] if has_forest else []
    if outputs["png"] is not None:
        picture = io.BytesIO()
        kind = outputs["png"].suffix[1:].lower()
        display.plot().figure_.savefig(picture, format=kind, dpi=200)
        replace_file(outputs["png"], picture.getvalue())
        say(f"wrote {outputs['png']}", error=True)
    if outputs["html"] is not None:
        title = f"Row {row} of {Path(data).name}"
        facts = {
            "model": about.model,
            "predicts": about.target,
            "fitted to": about.source,
        }
        if share is not None:
            facts["probability"] = f"{share:.3f}"
        page = explanation_page(display, title=title, facts=facts, notes=notes)
        replace_file(outputs["html"], page.encode("utf-8", errors="backslashreplace"))
        say(f"wrote {outputs['html']}", error=True)
    if as_json:
        told = _as_dict(display, about, share)
        print(json.dumps(told, indent=1, ensure_ascii=False))
        return
    for line in (*_words(display, share), *notes):
        say(line)


def _rows(parts: Iterator[Any], wanted: Sequence[int], data: str) -> list[Any]:
    """Return rows by their numbers, each as rows of its own."""
    found, first = {}, 0
    for part in parts:
        for row in wanted:
            if first <= row < first + part.shape[0]:
                place = slice(row - first, row - first + 1)
                found[row] = part[place]
                if hasattr(part, "iloc"):
                    found[row] = part.iloc[place].set_axis([row])
        first += part.shape[0]
        if len(found) == len(set(wanted)):
            return [found[row] for row in wanted]
    missing = next(row for row in wanted if row not in found)
    if not first:
        raise InputError(f"row {missing} is not there: {data} has no rows")
    raise InputError(f"row {missing} is not there: {data} has rows 0 to {first - 1}")


def _as_dict(
    display: LocalModelDisplay, about: About, share: float | None
) -> dict[str, Any]:
    """Return the explanation of one row as plain values."""
    compared = display.reference_values or [None] * len(display.columns)
    columns = zip(
        display.columns,
        display.values[0],
        compared,
        display.contributions[0].tolist(),
        strict=True,
    )
    return {
        "target": about.target,
        "predicted": str(display.classes[0]),
        "against": str(display.against[0]),
        "probability": share,
        "score": float(display.scores[0]),
        "reference": display.reference,
        "score at the reference": float(display.base[0]),
        "columns": [
            {
                "column": name,
                "value": value_text(value),
                "reference": value_text(other),
                "adds": added,
            }
            for name, value, other, added in columns
        ],
    }


def _words(display: LocalModelDisplay, share: float | None) -> Iterator[str]:
    """Yield the lines of an explanation, the columns that add most first."""
    label, other = display.classes[0], display.against[0]
    probability = "" if share is None else f", probability {share:.3f}"
    yield f"{label} rather than {other}{probability}; the score is the sum of these lines:"
    yield f"{display.base[0]:+9.3f}  the row's model at {display.reference}"
    for place in np.argsort(-np.abs(display.contributions[0]), kind="stable"):
        added = display.contributions[0, place] + 0.0
        value = value_text(display.values[0, place])
        yield f"{added:+9.3f}  {display.columns[place]} = {value}"
    yield f"{display.scores[0]:+9.3f}  the score"


def show_info(file: Path, *, as_json: bool) -> None:
    """Say what a file holds."""
    model, about = load_model(file)
    encoder = encoder_of(model)
    columns = {} if encoder is None else encoder.kinds_
    if as_json:
        print(json.dumps({**vars(about), "columns": columns}, indent=1))
        return
    say(
        f"{about.model}, fitted to {about.rows:,} rows of {about.source}; loclin {about.version}"
    )
    say(f"predicts {about.target}: {', '.join(about.classes)}")
    figures = figures_line(about.figures, about.measured_rows)
    measured = about.measured_on.removesuffix(" rows")
    say(f"on {about.measured_rows:,} rows ({measured}): {figures}")
    for name, kind in columns.items():
        say(f"  {name}: {'left out' if kind == 'leave out' else kind}")
    if encoder is None:
        say(f"  {model.n_features_in_:,} features, by their order")
