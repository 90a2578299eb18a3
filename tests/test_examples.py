"""The examples run, draw something, and are short to read."""

import re
import runpy
from pathlib import Path

import pytest

from tests.test_docs import sentences

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
QUICK = ("plot_01_table", "plot_16_metric")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.slow])
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_an_example(path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra [plot]")
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    assert figures
    assert all(any(axes.has_data() for axes in figure.axes) for figure in figures)
    accuracies = re.findall(r"accuracy (\d\.\d+)", capsys.readouterr().out)
    assert all(float(accuracy) > 0.6 for accuracy in accuracies)


def prose(path):
    """Return the text above the code and that of the cells, a paragraph each."""
    code = path.read_text()
    cells = re.findall(r"^# %%\n((?:#.*\n)+)", code, re.M)
    texts = [code.split('"""')[1], *(re.sub(r"^# ?", "", cell, flags=re.M) for cell in cells)]
    return "\n\n".join(re.sub(r"^.*\n[=-]{3,}\n", "\n", text, flags=re.M) for text in texts)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_told_in_short_sentences(path):
    text = prose(path)
    lengths = [len(sentence.split()) for sentence in sentences(text) if sentence]
    assert max(lengths) <= 32
    assert sum(lengths) <= 18 * len(lengths)
    assert "What to take away" in path.read_text()


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
