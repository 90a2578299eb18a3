"""The library without its extras: it works, and the command says what to install."""

import subprocess
import sys

import pytest

CODE = """
import sys


class Bare:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *where):
        extras = (
            "typer", "rich", "pandas", "duckdb", "pyarrow", "matplotlib", "jinja2", "skl2onnx",
            "dask",
        )  # fmt: skip
        return None if name in extras else self.finder.find_spec(name, *where)


sys.meta_path[:] = map(Bare, sys.meta_path)

import loclin
from loclin import anchors, codings, datasets, inspection

X, y = datasets.make_xor(60, random_state=0)
model = loclin.ML3Classifier(n_models=2, alpha="scale", random_state=0).fit(X, y)
print(model.predict(X).shape, datasets.load("iris").X_train.shape)
assert inspection.flip(model, X[0]).verified
assert inspection.record(model, X[0], reference=X)["label"] == model.predict(X[:1])[0]
assert "ML3Classifier" in str(inspection.summary(model))
display = inspection.LocalModelDisplay.from_estimator(model, X[:2], reference=X)
for needs_an_extra in (
    display.plot,
    display.frame,
    lambda: inspection.explanation_page(display, title=""),
    lambda: loclin.onnx,
    lambda: loclin.dask,
):
    try:
        needs_an_extra()
    except ImportError as error:
        print(error)
from loclin.cli import main

main()
"""


@pytest.fixture(scope="module")
def bare():
    """A process that fits a model and runs the command where no extra is installed."""
    return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)


def test_the_library_needs_no_extra(bare):
    assert bare.stdout.startswith("(60,) (150, 4)\n"), bare.stderr


def test_pictures_frames_pages_and_graphs_name_their_extras(bare):
    assert bare.stdout.splitlines()[1:] == [
        'This needs matplotlib: pip install "loclin[plot]"',
        'This needs pandas: pip install "loclin[tables]"',
        'This needs jinja2: pip install "loclin[html]"',
        'This needs skl2onnx: pip install "loclin[onnx]"',
        'loclin.dask needs Dask: pip install "loclin[dask]"',
    ]


def test_the_command_names_its_extra_in_one_line(bare):
    needed = "loclin: the command needs typer, rich, pandas, duckdb, jinja2"
    needed += ': pip install "loclin[cli]"\n'
    assert (bare.returncode, bare.stderr) == (2, needed)


def test_help_does_not_wait_for_the_models():
    """Completion asks the command at every key press."""
    code = (
        "import sys; sys.argv = ['loclin', '--help']\n"
        "from loclin.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'sklearn', 'numba', 'scipy', 'pandas'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.splitlines()[-1] == "set()", found.stderr


def test_names_of_the_package_are_imported_when_they_are_used():
    code = (
        "import sys, loclin\n"
        "assert 'sklearn' not in sys.modules\n"
        "assert 'ML3Classifier' in dir(loclin)\n"
        "print(loclin.ML3Classifier.__name__, loclin.codings.LLCCoding.__name__)\n"
        "from loclin import *\n"
        "print(LocallyLinearEnsemble.__name__, hasattr(loclin, 'ML4Classifier'))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split() == ["ML3Classifier", "LLCCoding", "LocallyLinearEnsemble", "False"]
