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
# Pages for those who are new here.
SHORT = [
    ROOT / "README.md",
    *(
        ROOT / f"docs/{name}.md"
        for name in ("index", "models", "cluster", "results", "glossary", "faq")
    ),
    *(ROOT / "docs").glob("from-*.md"),
]


def examples(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)


@pytest.mark.usefixtures("rule_alone")
def test_the_readme_s_example_runs():
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    (example,) = examples("README.md")
    names = {}
    exec(example, names)
    rows = names["table"][400:403]
    added = names["contributions"](names["model"], rows).sum(axis=1)
    assert list(names["model"].classes_) == ["no", "yes"]
    assert added.to_numpy() == pytest.approx(names["model"].decision_function(rows), abs=1e-9)
    assert names["model"].score(names["table"][400:], names["churn"][400:]) > 0.8


@pytest.mark.parametrize("page", ["index", "models", "faq", "from-svc", "from-boosting"])
@pytest.mark.usefixtures("rule_alone")
def test_the_examples_of_a_page_run(page, capsys):
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    names = {}
    for example in examples(f"docs/{page}.md"):
        exec(example, names)
    assert "False" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")
def test_the_examples_of_the_page_of_clusters_run(capsys):
    pytest.importorskip("dask.array", reason="needs the extra [dask]")
    names = {}
    for example in examples("docs/cluster.md"):
        exec(example, names)
    assert capsys.readouterr().out == "True\n" * 4


def sentences(text):
    """Sentences of a page in prose: without code, tables, headings and addresses."""
    text = re.sub(r"```.*?```|:::.*?:::|<!--.*?-->", "\n\n", text, flags=re.S)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=- )", text):
        if not block.strip().startswith(("#", "|")):
            yield from re.split(r"(?<=[.!?])[\"*)]*\s+(?=[A-Z`*\"(])", " ".join(block.split()))


@pytest.mark.parametrize("page", SHORT, ids=lambda page: page.name)
def test_sentences_are_short(page):
    lengths = [len(sentence.split()) for sentence in sentences(page.read_text()) if sentence]
    assert max(lengths) <= 32
    assert sum(lengths) <= 18 * len(lengths)


def test_the_readme_fits_in_one_screen_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 80
    for link in re.findall(r"\]\(([^)]*)\)", text):
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)", (ROOT / path).read_text(), re.M)
            assert anchor in [re.sub(r"[^\w-]", "", h.lower().replace(" ", "-")) for h in headings]


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
    assert printed.count("True") == 18
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
