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

from loclin.cli._arrays import features, is_table
from loclin.cli._errors import InputError, listed
from loclin.cli._fit import figures_line
from loclin.cli._outputs import check_outputs, replace_file
from loclin.cli._saved import About, encoder_of, load_model
from loclin.cli._terminal import say
from loclin.io import replaced
from loclin.tables import read_parts

if TYPE_CHECKING:
    from loclin.inspection import LocalModelDisplay

__all__ = ["explain_row", "predict_rows", "show_info"]

ROWS_AT_ONCE = 50_000  # of arrays


def predict_rows(
    file: Path,
    data: str,
    out: Path,
    *,
    header: bool,
    proba: bool,
    max_gb: float,
    as_json: bool,
) -> None:
    """Write a line for each row: its class, and with ``proba`` the shares of all classes."""
    model, about = load_model(file)
    check_outputs({"out": out}, [data, str(file)])
    if proba and not hasattr(model, "predict_proba"):
        raise InputError(
            f"{about.model} in {file} has no probabilities; leave out --proba"
        )
    found: Counter[tuple[str, str]] = Counter()
    extra: list[str] = []
    encoder = encoder_of(model)
    with _opened(out) as to:
        for number, rows in enumerate(_parts(model, about, data, header, max_gb)):
            if encoder is None:
                table = _predicted(model, about, rows, proba)
            else:
                extra = [name for name in rows.columns if name not in encoder.kinds_]
                features, notes = encoder.transform_and_note(rows)
                found.update(notes)
                table = _predicted(model[1:], about, features, proba)
            if as_json:
                to.write(table.to_json(orient="records", lines=True, force_ascii=False))
            else:
                table.to_csv(to, index=False, header=number == 0, lineterminator="\n")
    others = [name for name in extra if name != about.target]
    if others:
        say(f"note: columns {listed(others)} are not used", error=True)
    for (name, what), count in found.items():
        say(f"note: column '{name}': {count:,} {what}", error=True)


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
    X = features(data, max_gb * 1e9, model.n_features_in_)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        yield X[first : first + ROWS_AT_ONCE]


def _predicted(model: Any, about: About, rows: Any, proba: bool) -> Any:
    import pandas as pd

    name, n_rows = f"predicted {about.target}", rows.shape[0]
    if not proba:
        return pd.DataFrame({name: model.predict(rows) if n_rows else []})
    shape = (0, len(model.classes_))
    shares = model.predict_proba(rows) if n_rows else np.empty(shape)
    table = pd.DataFrame(shares, columns=[str(label) for label in model.classes_])
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
        page = explanation_page(display, title=title, facts=facts)
        replace_file(outputs["html"], page.encode("utf-8", errors="backslashreplace"))
        say(f"wrote {outputs['html']}", error=True)
    if as_json:
        print(json.dumps(_as_dict(display, about), indent=1, ensure_ascii=False))
    else:
        for line in _words(display):
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
    raise InputError(f"row {missing} is not there: {data} has rows 0 to {first - 1}")


def _as_dict(display: LocalModelDisplay, about: About) -> dict[str, Any]:
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
        "score": float(display.scores[0]),
        "reference": display.reference,
        "score at the reference": float(display.base[0]),
        "columns": [
            {"column": name, "value": str(value), "reference": str(other), "adds": added}
            for name, value, other, added in columns
        ],
    }


def _words(display: LocalModelDisplay) -> Iterator[str]:
    """Yield the lines of an explanation, the columns that add most first."""
    label, other = display.classes[0], display.against[0]
    yield f"{label} rather than {other}: score {display.scores[0]:+.3f}"
    yield f"{display.base[0]:+9.3f}  the row's model at {display.reference}"
    for place in np.argsort(-np.abs(display.contributions[0]), kind="stable"):
        added = display.contributions[0, place]
        yield f"{added:+9.3f}  {display.columns[place]} = {display.values[0, place]}"


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
    say(f"on {about.measured_rows:,} rows of {about.measured_on}: {figures}")
    for name, kind in columns.items():
        say(f"  {name}: {'left out' if kind == 'leave out' else kind}")
    if encoder is None:
        say(f"  {model.n_features_in_:,} features, by their order")
