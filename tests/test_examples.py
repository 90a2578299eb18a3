"""The examples run, draw something, and are short to read."""

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_page_of_digits_says_what_python_says(monkeypatch, capsys, tmp_path):
    path = tmp_path / "index.html"
    monkeypatch.setattr("sys.argv", ["make_page.py", str(path)])
    names = runpy.run_path(str(EXAMPLES[0].parent / "digits" / "make_page.py"))
    model, X, reference = names["model"], names["X_test"], names["X_train"].mean(axis=0)
    assert capsys.readouterr().out.startswith("accuracy 0.9")
    page = path.read_text()
    assert "src=" not in page  # all in one file
    data, *scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)

    corner = [[10, 0], [0, 0], [0, 30]]  # large and far away, it is the same drawing
    drawings = [[corner], [[[7 * x + 90, 7 * y - 50] for x, y in corner]], [[[50, 50]]]]
    (tmp_path / "data.json").write_text(json.dumps([json.loads(data), X.tolist(), drawings]))
    asked = f"""
    {{ const [{{ description, reference }}, rows, drawings] = JSON.parse(
      require("fs").readFileSync({json.dumps(str(tmp_path / "data.json"))}));
    const scores = reader.decisions(description, rows);
    const local = reader.localModel(description, rows);
    console.log(JSON.stringify([reader.predict(description, rows),
      rows.map((row, k) => digits.reasons(scores[k], local[k], row, reference)),
      drawings.map(digits.imageOf), digits.strokesOf("Infinity,3;1e400,1;5,x")])); }}
    """
    code = "\n".join([*scripts[:2], asked])
    run = subprocess.run(["node", "-e", code], capture_output=True, check=True, text=True)
    labels, reasons, drawn, nothing = json.loads(run.stdout)
    assert nothing == []
    np.testing.assert_array_equal(labels, model.predict(X))

    scores = model.decision_function(X)
    coef, _ = model.local_model(X)
    for k, told in enumerate(reasons):
        second, first = np.argsort(scores[k])[-2:]
        assert (told["first"], told["second"]) == (first, second)
        difference = scores[k, first] - scores[k, second]
        assert sum(told["parts"]) + told["base"] == pytest.approx(difference, abs=1e-9)
        parts = (coef[k, first] - coef[k, second]) * (X[k] - reference)
        np.testing.assert_allclose(told["parts"], parts, atol=1e-9)

    images = np.reshape(drawn, (3, 8, 8))
    np.testing.assert_array_equal(images[0], images[1])
    assert images.max() == 16
    assert images[0, :, 3].all(), "a digit fills the height"
    assert images[0, 0, 4] > images[0, 4, 4] == 0, "the bar of the corner is on top"
    np.testing.assert_array_equal(images[2], images[2].T)  # a dot


def test_there_are_examples():
    assert EXAMPLES
