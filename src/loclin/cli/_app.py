"""The commands of ``loclin``: their options, and nothing that takes long to import."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from loclin.cli._terminal import told

__all__ = ["app"]

ABOUT = "Locally linear classifiers: kernel-SVM accuracy at linear-SVM cost."

app = typer.Typer(help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"loclin {version_of('loclin')}")
        raise typer.Exit


@app.callback(help=ABOUT)
def _loclin(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


Source = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, TSV, Parquet, npz, svmlight), - for CSV from standard input, or the "
        "name of a data set such as digits."
    ),
]
Rows = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, TSV, Parquet, npz, svmlight), or - for CSV from standard input."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A file that loclin has saved.")]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of labels in a table; by default the last one. Without column names: its "
        "number, from 0.",
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header", help="The first line of a text table is a row, not names."
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What to choose by: error, log_loss, auc, average_precision or balanced_accuracy.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=2**32 - 1, help="Seed of splits, candidates and models."
    ),
]
MaxGb = Annotated[
    float,
    typer.Option(
        metavar="GB",
        min=1e-6,
        help="The most that a file may take, unpacked, in memory.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print everything as JSON, and nothing else.")
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a page: one HTML file.")
]


@app.command()
def compare(
    data: Source = "digits",
    target: Target = None,
    no_header: NoHeader = False,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of test rows.")
    ] = None,
    test_size: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of rows to test on: 0.25 by default."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Only these models, such as ml3,svc-rbf; or all."
        ),
    ] = None,
    metric: Metric = "error",
    budget: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1e-3, max=1e9, help="Time to tune each model."
        ),
    ] = 10.0,
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Folds of the cross-validation.")
    ] = 5,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of candidates to try for a model."
        ),
    ] = 60,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1024,
            help="Models to tune at once, each in a process; by default one a core, at most 4.",
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=1024,
            help="Threads of each fit; 0 leaves them to the libraries.",
        ),
    ] = 1,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            max=1e9,
            help="The most for one model in all; by default 20 budgets, at least 300; 0: none.",
        ),
    ] = None,
    max_gb: MaxGb = 1.0,
    json: AsJson = False,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table as CSV.")
    ] = None,
    html: Html = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the figures: .png, .svg or .pdf."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fit the best of loclin's models to all rows, and save it.",
        ),
    ] = None,
) -> None:
    """Compare loclin's classifiers with scikit-learn's on your data.

    Each model is tuned by cross-validation on the training rows for the same time, fitted
    anew, and tested once: error, log loss, AUC, fit time, prediction time, size.
    """
    with told():
        from loclin.cli._comparing import Files, run
        from loclin.cli._settings import Settings

        limit = Settings.default_time_limit(budget) if time_limit is None else time_limit
        settings = Settings(
            metric, budget, folds, candidates, seed, jobs or 0, threads, limit
        )
        files = Files(data, target, not no_header, test, test_size, max_gb)
        outputs = {"csv": csv, "html": html, "plot": plot, "save": save}
        run(files, models, settings, outputs, as_json=json)


@app.command()
def fit(
    data: Source,
    save: Annotated[Path, typer.Option(metavar="FILE", help="File of the model.")],
    target: Target = None,
    no_header: NoHeader = False,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A classifier such as ml3; auto: the best of three."
        ),
    ] = "auto",
    metric: Metric = "log_loss",
    seed: Seed = 0,
    max_gb: MaxGb = 1.0,
    json: AsJson = False,
) -> None:
    """Learn to predict a column of a table, and save the model.

    Columns may be numbers, categories, dates, texts and flags, with gaps. Held-out rows tell
    how good the model is.
    """
    with told():
        from loclin.cli._fit import fit_and_save

        fit_and_save(
            data,
            save,
            target=target,
            header=not no_header,
            model=model,
            metric=metric,
            seed=seed,
            max_gb=max_gb,
            as_json=json,
        )


@app.command()
def predict(
    file: ModelFile,
    data: Rows,
    no_header: NoHeader = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column of probabilities a class.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns to write beside, such as customer_id."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV to write; - for standard output.")
    ] = Path("-"),
    max_gb: MaxGb = 1.0,
    json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a row, not CSV.")
    ] = False,
) -> None:
    """Predict the rows of a table, part by part: memory does not grow with them."""
    with told():
        from loclin.cli._served import predict_rows

        predict_rows(
            file,
            data,
            out,
            header=not no_header,
            proba=proba,
            keep=[] if keep is None else [name.strip() for name in keep.split(",")],
            max_gb=max_gb,
            as_json=json,
        )


@app.command()
def explain(
    file: ModelFile,
    data: Rows,
    row: Annotated[int, typer.Option(metavar="N", help="Row of the table, from 0.")] = 0,
    reference: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Row of the table to compare with; by default the mean training row.",
        ),
    ] = None,
    no_header: NoHeader = False,
    max_gb: MaxGb = 1.0,
    json: AsJson = False,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: .png, .svg or .pdf.")
    ] = None,
    html: Html = None,
) -> None:
    """Say what each column adds to the score of a row, against a reference."""
    with told():
        from loclin.cli._served import explain_row

        explain_row(
            file,
            data,
            row,
            reference,
            header=not no_header,
            max_gb=max_gb,
            as_json=json,
            outputs={"png": png, "html": html},
        )


@app.command()
def info(file: ModelFile, json: AsJson = False) -> None:
    """Say what a file holds: the model, its columns, and how good it was on held-out rows."""
    with told():
        from loclin.cli._served import show_info

        show_info(file, as_json=json)
