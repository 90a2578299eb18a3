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


def test_the_pictures_of_the_readme(monkeypatch, capsys, tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    script = EXAMPLES[0].with_name("readme_pictures.py")
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    with matplotlib.rc_context():
        names = runpy.run_path(str(script))
    names["plt"].close("all")
    assert capsys.readouterr().out.count("accuracy 0.") == 2
    stored = script.parents[1] / "docs/_static"
    for name in ("regions.png", "explanation.png"):
        for path in (tmp_path / name, stored / name):
            assert 10_000 < path.stat().st_size < 100_000
    assert len(names["lines"]) == 3
    display = names["display"]
    added = display.contributions.sum() + display.base[0]
    assert added == pytest.approx(display.scores[0], abs=1e-9)


def test_there_are_examples():
    assert EXAMPLES
