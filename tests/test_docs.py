"""README and guide run as they stand; the documentation builds without warnings."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from benchmarks import cluster_page
from loclin import ML3Classifier

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs/notes").glob("*.md"),
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


@pytest.mark.parametrize("page", ["index", "models", "deploy", "faq", "from-svc", "from-boosting"])
@pytest.mark.usefixtures("rule_alone")
def test_the_examples_of_a_page_run(page, capsys):
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    if page == "deploy":
        pytest.importorskip("skops")
        pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    names = {}
    for example in examples(f"docs/{page}.md"):
        exec(example, names)
    assert "False" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")
def test_the_examples_of_the_page_of_clusters_run(capsys):
    pytest.importorskip("dask.dataframe", reason="needs the extra [dask] and pandas")
    names = {}
    for example in examples("docs/cluster.md"):
        exec(example, names)
    assert capsys.readouterr().out == "True\n" * 7


def test_the_tables_of_the_page_of_clusters_are_what_benchmarks_found():
    page = cluster_page.PAGE.read_text()
    assert cluster_page.written(page) == page


def sentences(text):
    """Sentences of a page in prose: without code, tables, headings and addresses."""
    text = re.sub(r"```.*?```|:::.*?:::|<!--.*?-->", "\n\n", text, flags=re.S)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=- )", text):
        if not block.strip().startswith(("#", "|")):
            yield from re.split(r"(?<=[.!?])[\"*)]*\s+(?=[A-Z`*\"(])", " ".join(block.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
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


class Page(HTMLParser):
    """What a page links to, and the places in it that links lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[key] for key in ("id", "name") if key in found}
        self.links += [found[key] for key in ("href", "src") if key in found]


def broken_links(site):
    """Yield the links between pages of a site that lead nowhere."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in map(urlsplit, page.links):
            if link.scheme or link.netloc:
                continue
            aim = (path.parent / unquote(link.path)).resolve() if link.path else path
            there = link.fragment in ("", *pages[aim].places) if aim in pages else aim.exists()
            if not there:
                yield f"{path.relative_to(site)}: {link.geturl()}"


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there"><a href="#here">')
    (tmp_path / "b.html").write_text('<img src="c.png"><a href="a.html#there"><a href="https://d">')
    assert sorted(broken_links(tmp_path)) == [
        "a.html: b.html#there",
        "b.html: a.html#there",
        "b.html: c.png",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "run_examples", [0, pytest.param(1, marks=pytest.mark.long)], ids=["pages", "examples"]
)
def test_the_documentation_builds_without_warnings(tmp_path, run_examples):
    """Of the two, the first leaves the examples to test_examples.py."""
    pytest.importorskip("sphinx_gallery", reason="needs loclin[docs]")

    docs, site = tmp_path / "docs", tmp_path / "site"  # some pages are written beside the others
    made = shutil.ignore_patterns("_build", "generated", "auto_examples")
    shutil.copytree(ROOT / "docs", docs, ignore=made)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "tests/extending", tmp_path / "tests/extending")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    command += ["-D", f"plot_gallery={run_examples}"]
    found = subprocess.run([*command, str(docs), str(site)], capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    for name in ("ML3Classifier", "codings.OrthogonalCoding", "datasets.load"):
        assert (site / "generated" / f"loclin.{name}.html").exists()
    for path in (ROOT / "examples").glob("plot_*.py"):
        assert (site / "auto_examples" / f"{path.stem}.html").exists()
    assert list(broken_links(site)) == []


def test_the_page_of_the_shell_has_the_example_of_a_server():
    code = (ROOT / "examples/serve.py").read_text()
    assert f"```python\n{code}```" in (ROOT / "docs/shell.md").read_text()
