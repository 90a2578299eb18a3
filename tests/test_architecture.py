"""The house stands as designed: imports run downward, docstrings run, sizes stay readable."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import loclin
from loclin import _jit

PACKAGE = Path(loclin.__file__).parent

# From the cellar to the roof: a module imports only from floors below its own.
FLOORS = [
    ["_jit", "_callbacks", "_checks", "_targets", "_threads"],
    [
        "losses",
        "_pooling_fast",
        "_nearest_fast",
        "_scores_fast",
        "solvers.rows_fast",
        "codings._base",
        "codings._lcc_fast",
    ],
    ["_scores"],
    ["anchors"],
    ["codings._nearest", "codings._planes", "codings._lcc"],
    ["codings._tangent"],
    [
        "projections",
        "_rows",
        "_encode",
        "_iterations",
        "_region_rules",
        "_bounds",
        "codings",
    ],
    [
        "_strength",
        "solvers.codes_fast",
        "solvers.averaging",
        "solvers.schedule",
        "solvers.l3m_span",
    ],
    ["solvers.l3m_outputs", "solvers.l3m_fast", "solvers.l3m_online_fast"],
    [
        "solvers.cccp_fast",
        "solvers.anchors_fast",
        "solvers.streams",
        "solvers.ussvm_codes",
        "solvers.ussvm_atoms",
    ],
    ["solvers.sgd_fast", "solvers.dual_cd_fast", "solvers.ussvm_rows"],
    ["solvers.dual_cs_fast"],
    ["solvers.cccp", "solvers.dual_cd", "solvers.sgd", "solvers"],
    ["_base", "_atoms", "solvers.cccp_runs", "solvers.sapl", "solvers.ussvm"],
    ["solvers.l3m_convex", "solvers.l3m_refined", "solvers.l3m_online"],
    ["solvers.growth"],
    ["_ml3", "_llsvm", "_sapl", "_l3m", "_ussvm"],
    [""],  # loclin/__init__.py
    ["datasets"],
    ["cli"],
]
FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}

MODULES = [
    info.name.removeprefix("loclin.")
    for info in pkgutil.walk_packages(loclin.__path__, "loclin.")
    if not info.name.endswith("__main__")
]


def floor_of(module):
    """Floor of a module, or of the nearest package around it that has one."""
    while module not in FLOOR:
        module = module.rpartition(".")[0]
        assert module, "every module has its floor"
    return FLOOR[module]


def imports_of(module):
    path = PACKAGE / (module.replace(".", "/") + ".py")
    path = path if path.exists() else PACKAGE / module.replace(".", "/") / "__init__.py"
    names = {name.removeprefix("loclin.") for name in MODULES} | {""}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "loclin":
            base = (node.module or "").removeprefix("loclin").lstrip(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}".lstrip(".")
                yield whole if whole in names else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "loclin":
                    yield alias.name.removeprefix("loclin").lstrip(".")


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downward(module):
    for imported in imports_of(module):
        inside = module.split(".")[0] == imported.split(".")[0] == "cli"
        assert inside or floor_of(imported) < floor_of(module), f"{module} imports {imported}"


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module):
    result = doctest.testmod(importlib.import_module(f"loclin.{module}"))
    assert result.failed == 0


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_sizes_stay_readable(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 60, f"{node.name} has {length} lines"


def test_public_names_exist_and_import_compiles_nothing():
    code = (
        "import sys, sklearn.base, sklearn.model_selection, numba\n"
        "try: import sklearn.callback\n"
        "except ImportError: pass\n"
        "before = set(sys.modules)\n"
        "import loclin\n"
        "assert all(hasattr(loclin, name) for name in loclin.__all__)\n"
        "from loclin.solvers import cccp_fast\n"
        "assert not cccp_fast.sgd_pass.signatures\n"
        "heavy = {'pandas', 'matplotlib', 'typer', 'rich', 'sklearn.cluster', 'sklearn.datasets'}\n"
        "assert not heavy & (set(sys.modules) - before), heavy & (set(sys.modules) - before)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_works_where_no_cache_folder_can_be_written(monkeypatch):
    real = _jit.njit

    def without_locator(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return real(**options)

    monkeypatch.setattr(_jit, "njit", without_locator)
    assert _jit.jit(lambda x: x + 1)(1) == 2


def test_other_compiler_errors_are_not_hidden(monkeypatch):
    def broken(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(_jit, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        _jit.jit(lambda x: x + 1)
