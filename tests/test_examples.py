"""The examples run, and draw something."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if "ussvm" in path.stem else [])
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_an_example(path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.delenv("LOCLIN_DATA", raising=False)
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    assert len(figures) >= 2
    assert all(any(axes.has_data() for axes in figure.axes) for figure in figures)
    assert "accuracy 0.9" in capsys.readouterr().out


def test_there_are_examples():
    assert EXAMPLES
