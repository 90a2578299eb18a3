"""The cache of compiled functions saves time, and decides nothing else."""

import ast
import errno
import importlib.util
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import pytest

from loclin import CompileCacheWarning
from loclin.engine import cache as _cache
from loclin.engine import jit as _jit
from loclin.engine import warned

resource = pytest.importorskip("resource", reason="limits the size of files")

SOURCE = """
from loclin.engine.jit import jit

@jit
def product(x):
    return {factor} * x

@jit
def other(x):
    return x - {factor}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A module with two compiled functions, and an empty cache."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(warned, "_warned", False)
    # Python takes a file of the same second and size for the one that it compiled before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(tmp_path, 2)
    return tmp_path


def write(folder, factor):
    (folder / "compiled.py").write_text(SOURCE.format(factor=factor))


def start(folder):
    """Import the module anew, as another process would."""
    spec = importlib.util.spec_from_file_location("compiled", folder / "compiled.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(folder, name, ending):
    return [*(folder / "cache").rglob(f"{name}-*{ending}")]


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_what_is_kept_is_loaded(home):
    assert start(home).product(21.0) == 42
    again = start(home)
    assert (again.product(21.0), hits(again.product)) == (42, 1)


def swapped(path):
    """What stands in the file of the other function."""
    return next(path.parent.glob(f"compiled.other-*{path.suffix}")).read_bytes()


DAMAGE = {
    "cut off": lambda path: path.read_bytes()[:-40],
    "empty": lambda path: b"",
    "zeros": lambda path: bytes(path.stat().st_size),
    "text": lambda path: b"not a cache at all\n",
    "a list": lambda path: pickle.dumps([1, 2]),
    "a class that is gone": lambda path: b"cno_such_module\nThing\n.",
    "a bit": lambda path: path.read_bytes()[:-40] + b"?" + path.read_bytes()[-39:],
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_anew_and_replaced(home, damage, ending):
    start(home).product(21.0)
    (path,) = files(home, "compiled.product", ending)
    path.write_bytes(DAMAGE[damage](path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert start(home).product(21.0) == 42
    if damage != "a list" or ending == "nbc":  # an index that begins otherwise is of another Numba
        (warning,) = caught
        assert warning.category is CompileCacheWarning
        assert str(path.parent) in str(warning.message)
        assert "NUMBA_CACHE_DIR" in str(warning.message)
    again = start(home)
    assert (again.product(21.0), hits(again.product)) == (42, 1)


def test_a_file_of_another_function_is_not_taken(home):
    first = start(home)
    assert (first.product(21.0), first.other(21.0)) == (42, 19)
    (path,) = files(home, "compiled.product", "nbc")
    path.write_bytes(swapped(path))
    assert start(home).product(21.0) == 42


def test_a_function_of_another_signature_is_not_taken(home):
    first = start(home)
    assert (first.product(21.0), first.product(21)) == (42, 42)
    one, two = files(home, "compiled.product", "nbc")
    one.write_bytes(two.read_bytes())
    again = start(home)
    assert [again.product(x) for x in (0.5, 21)] == [1.0, 42]


def test_functions_of_an_older_version_are_not_taken(home, monkeypatch):
    start(home).product(21.0)
    monkeypatch.setattr(_cache, "_version", lambda: "later")
    again = start(home)
    assert (again.product(21.0), hits(again.product)) == (42, 0)
    newest = start(home)
    assert (newest.product(21.0), hits(newest.product)) == (42, 1)


def test_a_write_cut_off_leaves_no_code_of_older_sources(home, monkeypatch):
    assert start(home).product(21.0) == 42
    write(home, 3)

    replace = os.replace

    def full(written, path):  # the index is written, the machine code is not
        if path.endswith("nbc"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(written, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.warns(CompileCacheWarning, match="No space left"):
            assert start(home).product(21.0) == 63
    assert start(home).product(21.0) == 63


@pytest.fixture
def full_disk():
    """Files of more than a few bytes cannot be written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_once(home, full_disk):
    module = start(home)
    with pytest.warns(CompileCacheWarning) as caught:
        assert (module.product(21.0), module.other(21.0)) == (42, 19)
    (message,) = {str(warning.message) for warning in caught}
    assert str(home / "cache") in message
    assert "Make room there, or let NUMBA_CACHE_DIR name a folder" in message
    assert len(caught) == 1


def test_a_full_disk_is_told_though_trials_are_quiet(home, full_disk):
    module = start(home)

    def trial():
        with warned.quiet():
            warnings.warn("of a trial", stacklevel=1)
            assert module.product(21.0) == 42
            raise ValueError("too few rows")

    with (
        pytest.warns(CompileCacheWarning, match="Make room there"),
        pytest.raises(ValueError, match="too few rows"),
    ):
        trial()


def test_no_folder_can_be_written(home, monkeypatch):
    monkeypatch.setattr(_cache._CheckedForm, "_locator_classes", ())
    module = start(home)  # importing says nothing
    with pytest.warns(CompileCacheWarning, match="NUMBA_CACHE_DIR name a folder"):
        assert module.product(21.0) == 42


def test_the_folder_is_gone_and_cannot_be_made(home):
    module = start(home)
    for folder in (home / "cache").iterdir():
        folder.rmdir()
        folder.write_text("a file")
    with pytest.warns(CompileCacheWarning, match="NotADirectoryError"):
        assert module.product(21.0) == 42


def test_without_a_home_no_folder_is_made_where_we_are(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does without a home
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(_cache._CheckedForm, "_locator_classes", (_cache._HomeLocator,))
    module = start(home)
    with pytest.warns(CompileCacheWarning):
        assert module.product(21.0) == 42
    assert not (home / "~").exists()


def test_errors_of_the_compiler_are_not_hidden(home, monkeypatch):
    with pytest.raises(numba.core.errors.TypingError):
        start(home).product(object())

    def broken(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(_jit, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        _jit.jit(lambda x: x + 1)


def test_what_is_not_to_be_kept_is_not(home):
    not_kept = _jit.jit(start(home).product.py_func, keeps=False)
    assert not_kept(21.0) == 42
    assert not files(home, "compiled.product", "nbc")


# What Numba calls its own is not promised: a later one may lack any of it.
PRIVATE = [
    (node.module, name.name)
    for node in ast.parse(Path(_cache.__file__).read_text()).body
    if isinstance(node, ast.ImportFrom) and node.module.startswith("numba.core")
    for name in node.names
]


@pytest.mark.parametrize(("module", "name"), PRIVATE)
def test_without_a_private_name_of_numba_nothing_is_kept(home, monkeypatch, module, name):
    spec = importlib.util.spec_from_file_location("loclin.engine.another", _jit.__file__)
    another = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        patch.delattr(f"{module}.{name}")
        patch.delitem(sys.modules, _cache.__name__)
        with pytest.warns(CompileCacheWarning, match=f"Numba .*{name}.* or an older Numba"):
            spec.loader.exec_module(another)
    assert another.jit(start(home).product.py_func)(21.0) == 42
    assert not files(home, "compiled.product", "nbc")


FITS = """
import sys, numba
caching = sys.modules["numba.core.caching"]
sys.modules["numba.core.caching"] = None
import loclin
sys.modules["numba.core.caching"] = caching
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
print(loclin.SVMKNNClassifier(10).fit(X, y).score(X, y) > 0.95)
"""


@pytest.mark.slow
def test_a_model_fits_without_the_private_module_of_numba(tmp_path):
    folder = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", FITS], env=folder, capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr
    assert "<string>:5: CompileCacheWarning: Compiled functions cannot be kept" in ran.stderr
    assert not [*tmp_path.iterdir()]
