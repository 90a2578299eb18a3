"""What is said of a comparison: the verdict, numbers as text, labels in the plot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text

from loclin.cli._compare import Result, ranked
from loclin.cli._data import Data
from loclin.cli._display import _Live
from loclin.cli._html import page
from loclin.cli._labels import Box, best_places
from loclin.cli._measure import interval
from loclin.cli._plot import _figure
from loclin.cli._report import Report, footnotes, legend
from loclin.cli._settings import Settings
from loclin.cli._text import micros, parameters, percent, size, times
from loclin.cli._tune import Tuned

TUNED = Tuned({}, 0.1, 5, 100, 3, 0.1, 80, 8.0)


def row(model, wrong, cost, n=1000, notes=()):
    """One result: the rows that are wrong are the first ``wrong`` ones."""
    low, high = interval(wrong, n)
    own, baseline, seconds = model.startswith("ML3"), model == "Majority", cost * 1e-6
    measured = (wrong / n, low, high, 0.5, 100, seconds, n, 2000)
    return Result(model, own, baseline, *measured, {}, TUNED, np.arange(n) < wrong, notes=notes)


def report(*rows, name="d"):
    X, y = np.zeros((100, 3)), np.zeros(100, int)
    data = Data(name, "", "", X, y, X, y, ("a", "b"))
    return Report(data, Settings(), ranked(rows), [], "loclin compare d", 1.0)


def verdict(*rows):
    return report(*rows).verdict


MAJORITY = row("Majority", 700, 0.01)


def test_verdict_takes_the_fast_model_that_is_as_good():
    words = verdict(row("SVC-rbf", 16, 120), row("ML3", 18, 3), row("LinearSVC", 90, 1), MAJORITY)
    assert words == (
        "Take ML3: 1.8 % error at 3.0 us a row. SVC-rbf has 1.6 % error at 120 us a row; on 1,000 "
        "test rows the difference may be chance (p = 0.5). If it must be faster, LinearSVC: 9.0 % "
        "error at 1.0 us a row."
    )


def test_verdict_takes_the_best_where_it_is_clearly_best():
    words = verdict(row("SVC-rbf", 16, 120), row("ML3", 60, 3), MAJORITY)
    assert words == (
        "Take SVC-rbf: 1.6 % error at 120 us a row. If it must be faster, ML3: 6.0 % error at "
        "3.0 us a row."
    )


def test_verdict_does_not_trade_errors_for_a_little_time():
    assert verdict(row("kNN", 0, 9), row("ML3", 3, 5), MAJORITY).startswith("Take kNN")
    assert verdict(row("kNN", 0, 11), row("ML3", 3, 5), MAJORITY).startswith("Take ML3")


def test_verdict_when_one_model_has_it_all():
    words = verdict(row("ML3", 16, 3), row("kNN", 60, 30), MAJORITY)
    assert words.endswith("No other model is as accurate or as fast.")


def test_verdict_when_nothing_beats_the_majority_class():
    rows = [row("Majority", 100, 0.01), row("ML3", 100, 3), row("kNN", 104, 30)]
    assert verdict(*rows).startswith("No model clearly beats the majority class (10.0 % error at")


def test_verdict_without_models():
    assert "choose some" in verdict(MAJORITY)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_terminal_shows_whole_columns(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    rows = [replace(row("LocallyLinearEnsemble", 10, 3e-6), log_loss=32.359, fit_seconds=123.4)]
    _Live([], 1.0).table(report(*rows))
    told = capsys.readouterr().out
    assert "…" not in told
    assert "32.359" in told


@pytest.mark.parametrize(("threads", "unit"), [(1, "processor seconds"), (2, "by the clock")])
def test_the_legend_says_how_times_were_taken(threads, unit):
    of_threads = replace(report(MAJORITY), settings=Settings(threads=threads))
    assert unit in legend(of_threads)[-1]


def test_footnotes_are_numbered_once():
    notes, marks = footnotes(
        report(row("ML3", 1, 1, notes=("x",)), row("kNN", 2, 2, notes=("y", "x")), MAJORITY)
    )
    assert notes == ["1 x", "2 y"]
    assert marks == ["*1", "2,1", ""]


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


# At least 16 points apart: of points that nearly coincide not all labels find a place.
places = st.tuples(st.integers(0, 28), st.integers(0, 16)).map(
    lambda p: (20.0 + 16 * p[0], 20.0 + 16 * p[1])
)


@settings(max_examples=25)
@given(st.lists(places, min_size=1, max_size=9, unique=True))
def test_labels_overlap_neither_each_other_nor_the_frame(spots):
    room = Box(0, 0, 500, 300)
    boxes = best_places(spots, [(70.0, 10.0)] * len(spots), [], room)
    assert len(boxes) == len(spots)
    for number, box in enumerate(boxes):
        assert box.outside(room) == 0
        assert all(box.overlap(other) < 1e-9 for other in boxes[:number])  # but for rounding


def test_labels_of_a_crowded_plot_do_not_overlap():
    rows = [row(f"Model number {i}", 50 + i % 3, 3 * 1.1**i) for i in range(9)]
    figure = _figure(report(*rows, row("ML3", 300, 1), MAJORITY))
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [
        Text.get_window_extent(text, renderer)  # an annotation would add its arrow
        for text in figure.axes[0].texts
        if text.get_text().startswith("M")
    ]
    assert len(boxes) == 10
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert wide <= 1 or high <= 1


@pytest.mark.parametrize("errors", [(0, 0, 5), (10, 20, 900), (300, 310, 320)])
def test_every_point_is_on_the_plot(errors):
    rows = [row(f"m{i}", wrong, 2.0**i) for i, wrong in enumerate(errors)]
    axes = _figure(report(*rows, MAJORITY)).axes[0]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for result in rows:
        assert left < 1e6 * result.predict_seconds < right
        assert bottom <= 100 * result.low
        assert 100 * result.high <= top


def test_front_line_joins_the_front():
    rows = [row("SVC-rbf", 16, 120), row("ML3", 60, 3), row("kNN", 70, 30)]
    axes = _figure(report(*rows)).axes[0]
    (line,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
    np.testing.assert_allclose(line.get_xdata()[1:5], [3, 3, 120, 120])
    np.testing.assert_allclose(line.get_ydata()[1:5], [axes.get_ylim()[1], 6, 6, 1.6])


def test_no_name_breaks_out_of_the_page():
    name = "--><script>alert(1)</script>\"'&.csv"
    result = page(report(row("ML3", 3, 3, notes=("<b>note</b>",)), name=name))
    assert "<svg" in result
    assert "<script" not in result
    assert "<b>" not in result


def test_dollars_in_a_name_are_no_mathematics():
    figure = _figure(report(row("ML3", 3, 3), name="a$b$^_{.csv"))
    figure.canvas.draw()
