"""The commands that learn from a table, and predict and explain by a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline

import loclin
import loclin.io
from loclin.cli._app import app
from loclin.cli._errors import InputError, listed, near, one_line
from loclin.cli._terminal import lost_output, say
from loclin.tables import TableEncoder, contributions

if TYPE_CHECKING:
    from pandas import DataFrame

# Of --model auto: the best by rank, the fastest of the best, and the one that says rules.
CANDIDATES = ("LocallyLinearEnsemble", "ML3Classifier", "L3MClassifier")
_TAKE_KERNELS = {"KernelLMKLClassifier"}
NAMES = [
    *sorted(
        name
        for name in set(loclin.__all__) - _TAKE_KERNELS
        if name.endswith("Classifier")
    ),
    "LocallyLinearEnsemble",
]
METRICS = ("log_loss", "error", "auc")
_FOLDS = 3
_MOST_COMPARED = 20_000  # rows that "auto" is chosen by
_ROWS_AT_ONCE = 50_000  # predicted, so that memory stays flat

Table = Annotated[
    str,
    typer.Argument(help="A table: CSV, TSV, Parquet, or - for CSV from standard input."),
]
File = Annotated[Path, typer.Argument(help="A file that `loclin fit` has saved.")]


@contextmanager
def told() -> Iterator[None]:
    """Say what is wrong in one line, and leave."""
    try:
        yield
    except KeyboardInterrupt:
        say("loclin: interrupted", error=True)
        raise typer.Exit(130) from None
    except OSError as error:
        if error.filename is None:  # the screen, or a pipe that is closed
            raise typer.Exit(lost_output(error)) from None
        say(f"loclin: {one_line(error)}", error=True)
        raise typer.Exit(2) from None
    except (InputError, ImportError, TypeError, ValueError) as error:
        say(f"loclin: {one_line(error)}", error=True)
        raise typer.Exit(2) from None


@app.command()
def fit(
    data: Table,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Column of labels.")],
    save: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write the model to.")
    ],
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A classifier's name, or auto: the best of three."
        ),
    ] = "auto",
    metric: Annotated[
        str,
        typer.Option(metavar="NAME", help="What auto goes by: log_loss, error or auc."),
    ] = "log_loss",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of folds and models.")] = 0,
) -> None:
    """Learn to predict a column of a table, and save the model.

    Columns may be numbers, categories, dates, texts and flags, with gaps. Held-out rows tell how
    good the model is.
    """
    with told():
        frame, y, notes = labelled(read_table(data), target)
        candidates = [
            named(name, seed) for name in (CANDIDATES if model == "auto" else [model])
        ]
        if metric not in METRICS:
            raise InputError(f"--metric {metric!r} is unknown; {near(metric, METRICS)}")
        compared, labels = frame, y
        if len(y) > _MOST_COMPARED:
            drawn = np.random.default_rng(seed).permutation(len(y))[:_MOST_COMPARED]
            compared, labels = frame.iloc[drawn], y[drawn]
            notes.append(
                f"held-out figures are of {_MOST_COMPARED:,} rows, drawn at random"
            )
        for note in notes:
            say(f"note: {note}", error=True)
        results = [held_out(one, compared, labels, seed) for one in candidates]
        best = min(range(len(results)), key=lambda k: results[k]["order"][metric])
        for one, result in zip(candidates, results, strict=True):
            say(_line(type(one[-1]).__name__, result))
        chosen = candidates[best].fit(frame, y)
        for note in chosen[0].notes_:
            say(f"note: {note}", error=True)
        chosen[0].about_ = {
            "loclin": loclin.__version__,
            "model": type(chosen[-1]).__name__,
            "target": target,
            "rows": len(y),
            "classes": [str(label) for label in chosen.classes_],
            "held out": {
                key: value for key, value in results[best].items() if key != "order"
            },
        }
        loclin.io.save(chosen, save)
        say(f"saved {type(chosen[-1]).__name__} in {save}")


@app.command()
def predict(
    file: File,
    data: Table,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", help="Write a column of probabilities for each class, too."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV to write; standard output by default."),
    ] = None,
) -> None:
    """Predict the rows of a table, part by part: memory does not grow with them."""
    with told():
        model = loaded(file)
        if proba and not hasattr(model, "predict_proba"):
            raise InputError(f"{model[0].about_['model']} in {file} has no probabilities")
        with (
            open(out, "w", encoding="utf-8", newline="")
            if out
            else nullcontext(sys.stdout) as to
        ):
            for number, part in enumerate(parts_of(data)):
                _predicted(model, part, proba).to_csv(
                    to, index=False, header=number == 0, lineterminator="\n"
                )


@app.command()
def explain(
    file: File,
    data: Table,
    row: Annotated[int, typer.Option(metavar="N", help="Row of the table, from 0.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Say what each column adds to the score of a row, against the mean training row."""
    with told():
        model, frame = loaded(file), read_table(data)
        if not 0 <= row < len(frame):
            raise InputError(
                f"--row {row} is not there: the table has rows 0 to {len(frame) - 1}"
            )
        told_row = explained(model, frame.iloc[[row]])
        if as_json:
            print(json.dumps(told_row, indent=1))
            return
        for line in _words(told_row):
            say(line)


@app.command()
def info(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Say what a file holds: the model, its columns, and how good it was on held-out rows."""
    with told():
        encoder = loaded(file)[0]
        about = {**encoder.about_, "columns": encoder.kinds_}
        if as_json:
            print(json.dumps(about, indent=1))
            return
        say(
            f"{about['model']}, fitted to {about['rows']:,} rows; loclin {about['loclin']}"
        )
        say(f"predicts {about['target']}: {', '.join(about['classes'])}")
        say(_line("on held-out rows", about["held out"]))
        for name, kind in about["columns"].items():
            say(f"  {name}: {'left out' if kind == 'leave out' else kind}")


def named(name: str, seed: int) -> Pipeline:
    """Return the unfitted pipeline of a classifier."""
    known = {one.lower().removesuffix("classifier"): one for one in NAMES}
    known |= {one.lower(): one for one in NAMES}
    wanted = name.lower().replace("-", "")
    if wanted not in known:
        raise InputError(f"--model {name!r} is unknown; {near(name, NAMES)}")
    kind = getattr(loclin, known[wanted])
    seeded = "random_state" in kind().get_params()
    return make_pipeline(TableEncoder(), kind(random_state=seed) if seeded else kind())


def read_table(path: str) -> DataFrame:
    """Return a whole table."""
    import pandas as pd

    return pd.concat(list(parts_of(path)), ignore_index=True)


def parts_of(path: str) -> Iterator[DataFrame]:
    """Yield a table part by part; a part without rows where it has none."""
    import pandas as pd

    if path.lower().endswith((".parquet", ".pq")):
        yield from _parquet(path)
        return
    source: str | TextIO = sys.stdin if path == "-" else path
    tabs = path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
    try:
        # as text: what a value means must not hang on those beside it
        with pd.read_csv(
            source,
            sep="\t" if tabs else ",",
            dtype=str,
            skipinitialspace=True,
            chunksize=_ROWS_AT_ONCE,
        ) as parts:
            yield from parts
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is no table of comma-separated values: {error}"
        ) from error


def _parquet(path: str) -> Iterator[DataFrame]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            'Parquet needs pyarrow: pip install "loclin[parquet]"'
        ) from error
    for batch in parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE):
        yield batch.to_pandas()


def labelled(frame: DataFrame, target: str) -> tuple[DataFrame, NDArray[Any], list[str]]:
    """Return features and labels, as texts, and what was left out."""
    if target not in frame.columns:
        raise InputError(
            f"there is no column {target!r}; {near(target, map(str, frame.columns))}"
        )
    labels, notes = frame[target], []
    known = labels.notna()
    if not known.all():
        notes.append(f"{int((~known).sum()):,} rows without a label are left out")
    frame = frame.loc[known].drop(columns=target)
    y = np.array([str(label).strip() for label in labels[known]])
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2 or counts.min() < _FOLDS:
        rare = listed(classes[counts < _FOLDS])
        raise InputError(
            f"column {target!r} has too few rows of a class: {rare or 'it has one class only'}. "
            f"Each needs {_FOLDS} rows."
        )
    return frame, y, notes


def held_out(
    model: Pipeline, frame: DataFrame, y: NDArray[Any], seed: int
) -> dict[str, Any]:
    """Return error, log loss and AUC of rows that folds hold out."""
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    found = cross_val_predict(clone(model), frame, y, cv=folds, method="predict_proba")
    classes = np.unique(y)
    error = 100 * float(np.mean(classes[found.argmax(axis=1)] != y))
    loss = float(log_loss(y, found, labels=classes))
    scores = found[:, 1] if len(classes) == 2 else found
    auc = float(roc_auc_score(y, scores, multi_class="ovr", labels=classes))
    order = {"log_loss": loss, "error": error, "auc": -auc}
    return {"error %": error, "log loss": loss, "AUC": auc, "order": order}


def loaded(file: Path) -> Any:
    """Return a model that `loclin fit` has saved."""
    model = loclin.io.load(file)
    encoder = model[0] if isinstance(model, Pipeline) else None
    if not hasattr(encoder, "about_"):
        raise InputError(
            f"{file} was not written by `loclin fit`; load it with loclin.io.load"
        )
    return model


def explained(model: Pipeline, frame: DataFrame) -> dict[str, Any]:
    """Return what each column adds to the score of a row's label, as numbers and texts."""
    label = str(model.predict(frame)[0])
    added = contributions(model, frame)
    if len(added) > 1:  # a score for each class
        of_label = added.xs(label, level=1).iloc[0]
    else:  # that of the second class
        sign = 1.0 if label == model.classes_[1] else -1.0
        of_label = sign * added.iloc[0]
    columns = of_label.drop("reference").sort_values(key=abs, ascending=False)
    return {
        "label": label,
        "score": float(of_label.sum()),
        "score of the mean training row": float(of_label["reference"]),
        "columns": [
            {"column": name, "value": str(frame[name].iloc[0]), "adds": float(value)}
            for name, value in columns.items()
        ],
    }


def _predicted(model: Pipeline, part: DataFrame, proba: bool) -> DataFrame:
    import pandas as pd

    name = f"predicted {model[0].about_['target']}"
    if not proba:
        return pd.DataFrame({name: model.predict(part) if len(part) else []})
    shares = (
        model.predict_proba(part) if len(part) else np.empty((0, len(model.classes_)))
    )
    table = pd.DataFrame(shares, columns=[str(label) for label in model.classes_])
    table.insert(0, name, model.classes_[shares.argmax(axis=1)] if len(part) else [])
    return table


def _line(name: str, result: dict[str, Any]) -> str:
    return (
        f"{name:22} error {result['error %']:5.1f} %   log loss {result['log loss']:.3f}   "
        f"AUC {result['AUC']:.3f}"
    )


def _words(told_row: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an explanation."""
    yield f"predicted: {told_row['label']} (score {told_row['score']:+.3f})"
    yield f"the mean training row scores {told_row['score of the mean training row']:+.3f}"
    for one in told_row["columns"]:
        yield f"{one['adds']:+9.3f}  {one['column']} = {one['value']}"
