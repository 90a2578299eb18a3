"""Settings of the whole suite: one thread, and compiled code that is never out of date."""

import ast
import gc
import hashlib
import os
import re
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "loclin"
COMPILED = re.compile(r"^@(jit|inner|overload)", re.MULTILINE)


def compiled_sources() -> list[Path]:
    """Files with compiled functions, and what of the package they import, directly or not."""
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    found: set[Path] = set()
    waiting = [path for path, text in sources.items() if COMPILED.search(text)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(sources[path])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loclin."):
                imported = PACKAGE.parent / (node.module.replace(".", "/") + ".py")
                waiting += [imported] if imported in sources else []
    return sorted(found)


# Numba notices a change in the file of a compiled function, not in the files of the functions that
# it calls; a cache folder named after all that is compiled cannot be stale.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in compiled_sources())).hexdigest()[
    :16
]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{_DIGEST}"))

import joblib  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

# The first example of a property may have to wait for the compiler.
settings.register_profile("loclin", deadline=None)
settings.load_profile("loclin")


# The compiler makes objects by the million, and few of them are in circles.
gc.set_threshold(1_000_000, 20, 100)


@pytest.fixture(autouse=True, scope="session")
def _cores_are_counted():
    """Let joblib warn now, where there is no `lscpu` to count with: it does so once a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joblib.cpu_count(only_physical_cores=True)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.fixture
def rule_alone(monkeypatch):
    """A strength of "auto" is the rule, as on very many rows; test_strength tests the choice."""
    from loclin.fitting import strength

    monkeypatch.setattr(strength, "MOST_ROWS", 0)


@pytest.fixture
def no_metric(monkeypatch):
    """A metric of "auto" is none, as with very many features; test_metric tests the choice."""
    from loclin.fitting import metric

    monkeypatch.setattr(metric, "MOST_FEATURES", 0)


@pytest.fixture
def told_by_its_own_rows(monkeypatch):
    """The temperature is told by the rows of the fit: short fits that hold some out take long.

    `test_probability` has these fits, of every model; so have the checks of scikit-learn.
    """
    from loclin.fitting import probability

    monkeypatch.setattr(probability, "splits_for", lambda rows, seed: iter(()))


# Tests of a group run one after another in one process. Each model has a group, so that no two
# processes compile its loops at once; the other tests are grouped by file. What takes long comes
# first, so that all processes are busy to the end.
MODELS = ["llsvm", "sapl", "ml3", "l3m", "ussvm", "csvm", "ldkl", "lmkl"]
OF_MODELS = {"test_codes": "llsvm", "test_cccp": "ml3", "test_stream": "ml3", "test_fuzz": "sapl"}
FIRST = [*MODELS, "test_docs", "test_extending", "test_sixth_model"]


def group_of(nodeid):
    """Return the model that the test's file or, failing that, its own name names, or the file."""
    path, _, name = nodeid.partition("::")
    file = Path(path).stem
    for text in (file, name):
        for model in MODELS:
            if model in text.lower().replace("-", ""):
                return model
    return OF_MODELS.get(name) or OF_MODELS.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute groups where xdist would distribute files."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadfile" else None


# Loops that no other test of the default run has compiled: second forms of what it does run.
SECOND_FORMS = re.compile(
    "|".join(
        [
            r"(ldkl|lmkl).*(sparse|csr)",  # the pass of SAPL and LL-SVM, for other coders
            r"test_columns.*\[(ldkl|lmkl)\]",  # the same: their rows are sparse
            r"test_a_failed_fit_leaves_an_unfitted.*\[(SAPL|LL-SVM, dual)-.*sparse",
            r"test_explanations_are_exact.*\[(sapl|ldkl|csvm|lmkl|l3m|llsvm, planes)-float32",
            r"test_llsvm.*\[by class-sparse",
            r"test_competing_classes.*\[.*dual_cd.*csr_matrix",
            r"test_sapl.*(\[csr_matrix-constant-|sparse_rows\[constant)",
            r"\[sapl constant .*sparse",
            r"test_(scores|anchors|codings|projections)\.py.*float32",
        ]
    )
)


# Of the slow ones: all is compiled once more, others in the default run show nearly the same, or
# processes wait for what takes its time.
LONG = re.compile(
    r"\[.*(float32|single)|float32_stays|single_precision|check_estimators_dtypes"
    r"|test_(estimators|sixth_model).*check_|test_cli|test_strength"
    r"|test_a_failed_fit_leaves_a_fitted|test_odd_but_valid_data"
    r"|plot_ussvm_atoms|of_every_class\[CSVM|frozen_coding_of_another_dtype\[dual_cd"
    r"|without_the_private_module|test_pipelines_with_words|test_sixth_model.*(csr_matrix|sparse)"
    r"|test_every_model.*USSVMClassifier-sparse|nothing_is_left.*\[(L3M|SAPL|LDKL|LMKL)"
    r"|linear_svc_s\[linear-2-dual_cd-coding6-asarray|near_the_best_of_any_temperature\[(sapl|llsvm)"
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Order the groups, and leave out what needs the papers' data where it is not at hand."""
    groups = {item: group_of(item.nodeid) for item in items}
    for item, group in groups.items():
        if SECOND_FORMS.search(f"{group}::{item.nodeid}"):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("slow") and LONG.search(item.nodeid):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: [*FIRST, groups[item]].index(groups[item]))
    if not os.environ.get("LOCLIN_DATA"):
        skip = pytest.mark.skip(reason="set LOCLIN_DATA to the folder of the papers' data sets")
        for item in items:
            if "data" in item.keywords:
                item.add_marker(skip)
