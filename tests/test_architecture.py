"""The house stands as designed: imports run downward, docstrings run, sizes stay readable."""

import ast
import doctest
import graphlib
import importlib
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import loclin
from loclin._names import FOLDERS

PACKAGE = Path(loclin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
         tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip

# A folder, or a file beside the folders, imports from those before it.
FLOORS = [
    ["portable", "_names"],  # what a fitted model computes, in words; the names of all models
    ["engine"],  # compiled loops, loaders, scores, descent: knows no paper
    ["fitting"],  # from data to a fitted model
    ["anchors", "projections"],
    ["codings"],
    # the papers, which do not know one another
    list(FOLDERS),
    ["_models"],
    ["ensemble", "_warmup"],
    [""],  # loclin/__init__.py
    ["datasets", "io", "tables"],
    # checkpoints, explanations, graphs for other programs, and fits to rows in parts
    ["callbacks", "inspection", "onnx", "cluster"],
    ["cli", "dask"],
]
FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}

MODULES = [
    info.name.removeprefix("loclin.")
    for info in pkgutil.walk_packages(loclin.__path__, "loclin.")
    if not info.name.endswith("__main__")
]


def folder_of(module):
    return module.partition(".")[0]


def imports_of(module):
    """Modules of the package that a module imports, wherever in its file."""
    path = PACKAGE / (module.replace(".", "/") + ".py")
    path = path if path.exists() else PACKAGE / module.replace(".", "/") / "__init__.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            if node.module and folder_of(node.module) == "loclin":
                base = node.module.removeprefix("loclin").lstrip(".")
                for alias in node.names:
                    whole = f"{base}.{alias.name}".lstrip(".")
                    yield whole if whole in MODULES else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if folder_of(alias.name) == "loclin":
                    yield alias.name.removeprefix("loclin").lstrip(".")


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downward(module):
    floor = FLOOR[folder_of(module)]
    for imported in imports_of(module):
        inside = folder_of(imported) == folder_of(module) != ""
        assert inside or FLOOR[folder_of(imported)] < floor, f"{module} imports {imported}"


def test_no_imports_run_in_a_circle():
    sorter = graphlib.TopologicalSorter({module: set(imports_of(module)) for module in MODULES})
    sorter.prepare()  # raises on a circle


PRIVATE = re.compile(r"(.*\.)?_[^_]|numba\.core\.(?!event)")  # Numba's manual has `core.event`


def imports_of_others(path):
    """Names that a file imports from other packages, with their modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (module + one.name for one in node.names if folder_of(module) != "loclin")


def test_private_names_of_others_are_in_one_file():
    """In the one that `jit` can do without."""
    private = {
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        if any(map(PRIVATE.match, imports_of_others(path)))
    }
    assert private == {"engine/cache.py"}


@pytest.mark.usefixtures("rule_alone")
@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module):
    if module == "callbacks":
        pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    result = doctest.testmod(importlib.import_module(f"loclin.{module}"))
    assert result.failed == 0


def code_lines(path):
    """Lines of a file that are neither blank nor comment nor docstring."""
    text = path.read_text()
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_sizes_stay_readable(path):
    assert code_lines(path) <= 300
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 60, f"{node.name} has {length} lines"


def classes():
    for module in MODULES:
        for value in vars(importlib.import_module(f"loclin.{module}")).values():
            if isinstance(value, type) and value.__module__ == f"loclin.{module}":
                yield value


# A constructor or a library's protocol is extended: the base's part runs too.
EXTENDED = {"__init__", "__init_subclass__", "__sklearn_tags__", "__getstate__", "__setstate__",
            "_what_is_wrong", "count_in"}  # fmt: skip


def is_concrete(attribute):
    behaves = callable(attribute) or isinstance(attribute, property | classmethod | staticmethod)
    return behaves and not getattr(attribute, "__isabstractmethod__", False)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_only_what_is_abstract_is_overridden(kind):
    for base in kind.__mro__[1:]:
        if base.__module__.startswith("loclin"):
            for name in set(vars(kind)) & set(vars(base)) - EXTENDED:
                written = name in getattr(base, "__annotations__", {}) or name.startswith("__")
                assert written or not is_concrete(vars(base)[name]), f"{base.__name__}.{name}"


def kernels():
    """Compiled functions, and the stubs that overloads stand behind."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = [ast.unparse(decorator) for decorator in node.decorator_list]
                if any(name.startswith(("jit", "inner", "overload")) for name in names):
                    yield pytest.param(node, id=f"{path.relative_to(PACKAGE)}:{node.name}")


@pytest.mark.parametrize("node", kernels())
def test_kernels_take_few_arguments_and_say_the_shapes_of_arrays(node):
    arguments = node.args.args
    assert len(arguments) <= 10
    if len(arguments) >= 8 and ast.unparse(node.decorator_list[0]) in ("jit", "inner"):
        assert "Parameters\n" in (ast.get_docstring(node) or "")


def test_public_names_exist_and_import_compiles_nothing():
    code = (
        "import sys, sklearn.base, sklearn.model_selection, numba\n"
        "try: import sklearn.callback\n"
        "except ImportError: pass\n"
        "before = set(sys.modules)\n"
        "import loclin\n"
        "assert all(hasattr(loclin, name) for name in loclin.__all__)\n"
        "from loclin.ml3 import kernels\n"
        "assert not kernels.cccp_pass.signatures\n"
        "heavy = {'pandas', 'matplotlib', 'typer', 'rich', 'sklearn.cluster', 'sklearn.datasets'}\n"
        "assert not heavy & (set(sys.modules) - before), heavy & (set(sys.modules) - before)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
