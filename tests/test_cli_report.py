"""What is said of a comparison: the verdict, numbers as text, the plot and the page."""

from dataclasses import replace

import numpy as np
import pytest

from loclin.cli._compare import Result, ranked
from loclin.cli._data import Data
from loclin.cli._display import show
from loclin.cli._measure import Answers, interval
from loclin.cli._outputs import page
from loclin.cli._plot import _figure
from loclin.cli._report import Report, footnotes, legend
from loclin.cli._settings import METRICS, Settings
from loclin.cli._text import micros, parameters, percent, size, times
from loclin.cli._tune import Tuned

TUNED = Tuned({}, 0.1, 5, 100, 6, 0.0, 8.0)


def row(model, wrong, cost, n=1000, notes=(), needed=0.0, shares=True, n_bytes=2000):
    """One result: the rows that are wrong are the first ``wrong`` ones, all of class 0."""
    low, high = interval(wrong, n)
    own, baseline = model.startswith("ML3"), model == "Majority"
    predicted = (np.arange(n) < wrong).astype(int)
    said = Answers(predicted, np.eye(2)[predicted], shares)
    figures = dict.fromkeys(METRICS, 0.5) | {"error": wrong / n}
    tuned = replace(TUNED, needed=needed)
    measured = (figures, low, high, 0.5, cost * 1e-6, n, n_bytes)
    return Result(model, own, baseline, *measured, {}, tuned, said, notes=notes)


def report(*rows, name="d", **settings):
    X, y = np.zeros((100, 3)), np.zeros(100, int)
    X_test, y_test = np.zeros((1000, 3)), np.zeros(1000, int)
    data = Data(name, "", "", X, y, X_test, y_test, ("a", "b"))
    settings = Settings(**settings)
    return Report(data, settings, ranked(rows, settings.metric), [], "loclin compare d", 1.0)


def verdict(*rows):
    return report(*rows).verdict


MAJORITY = row("Majority", 700, 0.01)


def test_verdict_takes_the_fast_model_that_is_as_good():
    words = verdict(row("SVC-rbf", 16, 120), row("ML3", 18, 3), row("LinearSVC", 90, 1), MAJORITY)
    assert words == [
        "Take ML3: 1.8 % error at 3.0 us a row. SVC-rbf has 1.6 % error at 120 us a row; on 1,000 "
        "test rows the difference may be chance (p = 0.5).",
        "In a microsecond a row: LinearSVC, 9.0 % error at 1.0 us a row.",
    ]


def test_verdict_says_what_else_to_take_under_other_conditions():
    rows = [
        row("SVC-rbf", 16, 120, shares=False, n_bytes=10**6),
        row("ML3", 60, 3, n_bytes=90_000),
        row("LinearSVC", 90, 1, shares=False),
    ]
    assert verdict(*rows, MAJORITY)[1:] == [
        "With probabilities: ML3, 6.0 % error at 3.0 us a row.",
        "In a microsecond a row: LinearSVC, 9.0 % error at 1.0 us a row.",
        "In 16 kB: LinearSVC, 9.0 % error at 1.0 us a row.",
    ]


def test_verdict_does_not_trade_errors_for_a_little_time():
    assert verdict(row("kNN", 0, 9), row("ML3", 3, 5), MAJORITY)[0].startswith("Take kNN")
    assert verdict(row("kNN", 0, 11), row("ML3", 3, 5), MAJORITY)[0].startswith("Take ML3")


def test_what_was_hardly_tuned_is_not_recommended_before_others():
    rows = [row("ML3", 10, 1, needed=123.0), row("kNN", 60, 0.9), MAJORITY]
    words = verdict(*rows)
    assert words[0].startswith("Take kNN: 6.0 % error")
    assert words[-1] == (
        "1 model was hardly tuned (see the notes), and not recommended before others; for a fair "
        "comparison: --budget 200"
    )
    assert verdict(rows[0], MAJORITY)[0].startswith("Take ML3"), "there is no other"


def test_a_model_without_the_metric_is_not_recommended():
    lacking = row("SVC-rbf", 10, 1, shares=False)
    lacking = replace(lacking, figures={**lacking.figures, "log_loss": None})
    worse = row("kNN", 20, 1)
    worse = replace(worse, figures={**worse.figures, "log_loss": 0.4})
    found = report(lacking, worse, metric="log_loss")
    assert [one.model for one in found.rows] == ["kNN", "SVC-rbf"]
    assert found.taken.model == "kNN"


def test_verdict_when_nothing_beats_the_majority_class():
    rows = [row("Majority", 100, 0.01), row("ML3", 100, 3), row("kNN", 104, 30)]
    words = verdict(*rows)[0]
    assert words.startswith("No model clearly beats the majority class (10.0 % error at")
    assert report(*rows).taken is None


def test_verdict_without_models():
    assert "choose some" in verdict(MAJORITY)[0]


def test_a_small_terminal_shows_whole_figures(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "95")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    one = row("LocallyLinearEnsemble", 10, 3e-6)
    figures = {**one.figures, "log_loss": 32.359}
    show(report(replace(one, figures=figures, fit_seconds=123.4)))
    told = capsys.readouterr().out
    assert "…" not in told
    assert "32.359" in told


@pytest.mark.parametrize(("threads", "unit"), [(1, "processor seconds"), (2, "by the clock")])
def test_the_legend_says_how_times_were_taken(threads, unit):
    of_threads = replace(report(MAJORITY), settings=Settings(threads=threads))
    assert any(unit in line for line in legend(of_threads))


def test_footnotes_are_numbered_once():
    notes, marks = footnotes(
        report(row("ML3", 1, 1, notes=("x",)), row("kNN", 2, 2, notes=("y", "x")), MAJORITY)
    )
    assert notes == ["1 x", "2 y"]
    assert marks == ["* 1", "2,1", ""]


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (times, 0.0004, "<0.001"),
        (times, 0.0123, "0.012"),
        (times, 3.14159, "3.14"),
        (times, 31.4159, "31.4"),
        (times, 31415.9, "31,416"),
        (micros, 2.34e-9, "<0.01"),
        (micros, 2.34e-8, "0.02"),
        (micros, 2.34e-6, "2.3"),
        (micros, 2.34e-3, "2,340"),
        (size, 999, "999 B"),
        (size, 1500, "2 kB"),
        (size, 2_345_678, "2.3 MB"),
        (size, 234_567_890, "235 MB"),
        (size, 2_345_678_901, "2.3 GB"),
        (parameters, {}, "defaults"),
        (parameters, {"b": 0.000123456, "a": 3, "c": "x"}, "a=3, b=0.000123, c=x"),
    ],
)
def test_numbers_as_text(function, value, text):
    assert function(value) == text


def test_percent_has_decimals_to_match_the_rows():
    assert percent(0.01234, 100) == "1.2"
    assert percent(0.01234, 10_000) == "1.23"


@pytest.mark.parametrize("errors", [(0, 0, 5), (10, 20, 900), (300, 310, 320)])
def test_every_point_is_on_the_plot(errors):
    rows = [row(f"m{i}", wrong, 2.0**i) for i, wrong in enumerate(errors)]
    axes = _figure(report(*rows, MAJORITY)).axes[0]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for result in rows:
        assert left < 1e6 * result.predict_seconds < right
        assert bottom <= 100 * result.low
        assert 100 * result.high <= top


def test_points_are_numbered_as_the_names_beside_them():
    rows = [row("SVC-rbf", 16, 120), row("ML3", 60, 3), row("kNN", 70, 30)]
    figure = _figure(report(*rows))
    axes = figure.axes[0]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places["2"] == (pytest.approx(3), pytest.approx(6))
    assert "2  ML3" in {text.get_text() for text in figure.texts}


def test_front_line_joins_the_front():
    rows = [row("SVC-rbf", 16, 120), row("ML3", 60, 3), row("kNN", 70, 30)]
    axes = _figure(report(*rows)).axes[0]
    (line,) = [line for line in axes.lines if line.get_drawstyle().startswith("steps")]
    np.testing.assert_allclose(line.get_xdata(), [3, 120])
    np.testing.assert_allclose(line.get_ydata(), [6, 1.6])


def test_a_metric_without_an_interval_is_drawn():
    figure = _figure(report(row("ML3", 3, 3), row("kNN", 9, 2), MAJORITY, metric="auc"))
    figure.canvas.draw()
    assert figure.axes[0].get_ylabel() == "AUC"


def test_no_name_breaks_out_of_the_page():
    name = "--><script>alert(1)</script>\"'&.csv"
    result = page(report(row("ML3", 3, 3, notes=("<b>note</b>",)), name=name))
    assert "<svg" in result
    assert "<script" not in result
    assert "<b>" not in result


def test_dollars_in_a_name_are_no_mathematics():
    figure = _figure(report(row("ML3", 3, 3), name="a$b$^_{.csv"))
    figure.canvas.draw()
