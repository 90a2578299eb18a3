"""README and guide run as they stand; the documentation builds without warnings."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loclin import ML3Classifier

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs/notes").glob("*.md"),
]


def examples(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)


@pytest.mark.usefixtures("rule_alone")
def test_the_readme_s_first_example_runs(capsys):
    exec(examples("README.md")[0], {})
    assert float(capsys.readouterr().out) > 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("rule_alone")
def test_the_guide_s_examples_run(capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for example in examples("docs/guide.md"):
        if "Checkpoint(" not in example or hasattr(ML3Classifier, "set_callbacks"):
            exec(example, names)
            pyplot.close("all")
    printed = capsys.readouterr().out
    assert float(printed.split("\n")[0]) > 0.95
    assert printed.count("True") == 17
    assert "False" not in printed
    assert "region 0" in printed
    assert "[0 1 2 3 4 5 6 7 8 9]\n" in printed


def files_named(text):
    """Paths that a page names: `engine/rows.py`, or `cccp.py` in a row that begins with `ml3`."""
    for folder, row in re.findall(r"^\| `(\w+)` \| (.*)", text, re.M):
        for file in re.findall(r"`(\w+\.py)`", row):
            yield f"{folder}/{file}"
    yield from re.findall(r"`([\w/]+/\w+\.py)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page):
    for file in files_named(page.read_text()):
        assert any((ROOT / start / file).exists() for start in ("", "src/loclin")), file


@pytest.mark.slow
def test_the_documentation_builds_without_warnings(tmp_path):
    pytest.importorskip("sphinx", reason="needs loclin[docs]")

    docs = tmp_path / "docs"  # pages of the reference are written beside
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build", "generated"))
    shutil.copytree(ROOT / "tests/extending", tmp_path / "tests/extending")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy"]
    found = subprocess.run([*command, str(docs), str(tmp_path / "out")], capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    for name in ("ML3Classifier", "codings.OrthogonalCoding", "datasets.load"):
        assert (docs / "generated" / f"loclin.{name}.rst").exists()


def test_the_page_of_the_shell_has_the_example_of_a_server():
    code = (ROOT / "examples/serve.py").read_text()
    assert f"```python\n{code}```" in (ROOT / "docs/shell.md").read_text()
