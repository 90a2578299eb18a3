"""Forged files of models: refused in one line, at once, and before they take memory."""

import json
import os
import struct
import time
import tracemalloc
import zipfile
from functools import reduce

import numpy as np
import pytest
import sklearn
from scipy import sparse, special
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import loclin
import loclin.io
from loclin.codings import SoftAssignmentCoding
from loclin.io._checks import ends_soon
from tests import forged

COLLIDING = 2**61 - 1  # multiples of it have the same hash


def holding(node):
    """Return the node of a model with that in a parameter which only fits look at."""
    return {"object": "loclin.ML3Classifier", "state": [["random_state", node]]}


def of_class(name, **state):
    version = {"_sklearn_version": sklearn.__version__} if name.startswith("sklearn") else {}
    return {"object": name, "state": [*(version | state).items()]}


def pairs(**state):
    return {"dict": [[key, value] for key, value in state.items()]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.loclin"


def refused(path, match=".", trusted=()):
    """Load a file that is refused, in one line, below a second and with little memory."""
    seconds = []
    while not seconds or (min(seconds) >= 1 and len(seconds) < 3):  # a collection of garbage counts
        start = time.thread_time()
        with pytest.raises(ValueError, match=match) as caught:
            loclin.io.load(path, trusted=trusted)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 1
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match):
            loclin.io.load(path, trusted=trusted)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2e7 + 4 * path.stat().st_size
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 3000
    assert str(path) in message
    return message


def loaded(path, node, **arrays):
    return loclin.io.load(forged.write(path, forged.of(holding(node), **arrays))).random_state


# The files that took a gigabyte or more, or minutes.


def packed(path, method, n_bytes):
    """A tree that says it is a MiB, and unpacks to more."""
    forged.write(path, forged.of(None), method, b" " * n_bytes)
    content = bytearray(path.read_bytes())
    for sign, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", content, content.rindex(sign) + place, 2**20)
    path.write_bytes(content)


def doubled(first, twice, n=40):
    """Nodes that each hold the one before twice; the model is the first that counts."""
    return [first, *(twice({"same": place + 2}) for place in range(n))]


MIB = np.zeros(2**17)
TREES = {
    "one array 3,000 times": ([{"array": "a"}] * 3000, {"a": MIB}, "is in two places"),
    "a constant CSR": (
        {"csr": [{"array": "a", "shape": [3 * 10**7]}, {"array": "b", "shape": [3 * 10**7]},
                 {"array": "c"}], "shape": [1, 1], "is_array": False},
        {"a": np.array(1.0), "b": np.array(0, "i4"), "c": np.array([0, 3 * 10**7])},
        "constant",
    ),
    "a number of no kind": ({"number": 2**31 - 1, "dtype": "V1"}, {}, "no dtype"),
    "strings of no letters": ({"array": "a"}, {"a": forged.header("|S0", (10**11,))}, "S0"),
    "text of no letters": ({"array": "a"}, {"a": forged.header("<U0", (10**11,))}, "U0"),
    "nothing many times": ({"array": "a"}, {"a": forged.header("|V0", (10**12,))}, "V0"),
    "numbers that collide": ({"set": [k * COLLIDING for k in range(60_000)]}, {}, "too many"),
    "lists doubled": (doubled([1], lambda same: [same, same]), {}, "grows too large"),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_what_took_a_gigabyte_or_a_minute_is_refused(name, path):
    node, arrays, match = TREES[name]
    refused(forged.write(path, forged.of(holding(node), **arrays)), match)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_a_tree_that_unpacks_to_more_than_it_says_is_refused(method, path):
    packed(path, method, 2**28 if method == zipfile.ZIP_BZIP2 else 2**26)
    refused(path, "packed in another way|CRC|more than loclin writes")


def test_a_pattern_that_never_ends_is_refused(path):
    model = make_pipeline(CountVectorizer(token_pattern="(a+)+$"), loclin.ML3Classifier())
    loclin.io.save(model, path)
    message = refused(path, r"token_pattern='\(a\+\)\+\$', which can take any time")
    assert "load(path, trusted=['(a+)+$'])" in message
    again = loclin.io.load(path, trusted=["(a+)+$"])
    assert again[0].token_pattern == "(a+)+$"


@pytest.mark.parametrize("found", ["1", -5, 0, 1.9, 1.0, True, None, [1], "2"])
def test_formats_that_no_loclin_has_written_are_refused(found, path):
    file = forged.of(holding(1))
    file.tree["format"] = found
    refused(forged.write(path, file), "damaged .*no format")


def test_a_scaler_with_a_scale_without_an_axis_is_refused(path):
    scaler = of_class("sklearn.preprocessing.StandardScaler", scale_={"array": "a"})
    file = forged.of(holding(scaler), a=np.array(1.0))
    refused(forged.write(path, file), "scale_ of a StandardScaler is an array without an axis")


WORDS = [" ".join(pair) for pair in zip("abcdefgh" * 8, "ghabcdef" * 8, strict=True)]
LETTERS = np.array(list("abc" * 20 + "abcd")).reshape(-1, 1)


def forged_step(path, step, rows, name, value):
    """Save a pipeline and change an attribute of its first step."""
    model = make_pipeline(step, loclin.ML3Classifier(2, max_iter=2, alpha=0.01, metric=None))
    model.set_params(ml3classifier__calibrate=False).fit(rows, np.arange(len(rows)) % 2)
    loclin.io.save(model, path)
    file = forged.read(path)
    state = file.tree["model"]["state"]
    steps = next(node for key, node in state if key == "steps")
    step_state = steps[0]["tuple"][1]["state"]
    next(pair for pair in step_state if pair[0] == name)[1] = value
    forged.write(path, file)


@pytest.mark.parametrize("outs", [[1], [10**9], [-4], [4, 4]])
@pytest.mark.parametrize("drop", [None, "first"])
def test_an_encoder_whose_columns_are_not_there_is_refused(outs, drop, path):
    forged_step(path, OneHotEncoder(drop=drop), LETTERS, "_n_features_outs", outs)
    refused(path, "_n_features_outs of a OneHotEncoder counts columns that are not there")


@pytest.mark.parametrize("place", [0, 1])
def test_a_step_without_a_name_or_an_estimator_is_refused(place, path):
    model = make_pipeline(StandardScaler(), SoftAssignmentCoding(2, 2)).fit(np.eye(4))
    loclin.io.save(model, path)
    file = forged.read(path)
    steps = next(node for key, node in file.tree["model"]["state"] if key == "steps")
    del steps[place]["tuple"][1]
    refused(forged.write(path, file), "steps of a Pipeline has a part of another length")


def test_an_encoder_of_rare_categories_comes_back(path):
    encoder = OneHotEncoder(min_frequency=10, drop="first", sparse_output=False)
    model = make_pipeline(encoder, loclin.ML3Classifier(2, max_iter=2)).fit(
        LETTERS, np.arange(len(LETTERS)) % 2
    )
    loclin.io.save(model, path)
    np.testing.assert_array_equal(loclin.io.load(path).predict(LETTERS), model.predict(LETTERS))


@pytest.mark.parametrize("place", [10**9, -1, 1])
def test_words_whose_columns_are_not_there_are_refused(place, path):
    words = {"dict": [["a", place], *([w, k + 1] for k, w in enumerate("bcdefgh"))]}
    counts = CountVectorizer(token_pattern=r"\w")
    forged_step(path, counts, WORDS, "vocabulary_", words)
    refused(path, "vocabulary_ of a CountVectorizer counts columns that are not there")


@pytest.mark.parametrize("n_features", [0, -5, 10**10])
def test_hashing_into_no_columns_is_refused(n_features, path):
    step = HashingVectorizer(n_features=8, token_pattern=r"\w")
    forged_step(path, step, WORDS, "n_features", n_features)
    refused(path, "n_features of a HashingVectorizer counts columns that are not there")


@pytest.mark.parametrize("name", ["_checked_parameters", "_validate_new", "predict", "_is_fitted"])
def test_an_attribute_does_not_hide_a_method(name, path):
    model = of_class("loclin.ML3Classifier", **{name: {"type": "object"}})
    refused(forged.write(path, forged.of(model)), f"{name} is a method of ML3Classifier")


def test_an_interrupt_of_a_half_written_array_is_heard(path, monkeypatch):
    model = loclin.ML3Classifier(2, max_iter=2, alpha=0.01).fit(np.eye(4), [0, 1, 0, 1])

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile._ZipWriteFile, "close", stop)
    with pytest.raises(KeyboardInterrupt):
        loclin.io.save(model, path)
    monkeypatch.undo()
    assert not list(path.parent.iterdir())


# The kinds that these stand for.


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_arrays_that_are_packed_are_refused(method, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", bytes(2**24), method)
        archive.writestr(forged.TREE, json.dumps(forged.of(holding({"array": "a"})).tree))
    refused(path, "packed in another way")


NESTED = {
    "lists": doubled([1], lambda same: [same, same]),
    "dicts": doubled({"dict": []}, lambda same: {"dict": [["a", same], ["b", same]]}),
    "tuples": doubled([1], lambda same: [{"tuple": [same, same]}]),
    "arrays of objects": doubled([1], lambda same: {"objects": [same, same], "shape": [2]}),
    "estimators": doubled(holding(1), lambda one: of_class("loclin.L3MClassifier", a=one, b=one)),
    "arrays": [{"array": "a"}, *[{"same": 2}] * 2000],
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_what_grows_where_it_is_not_seen_to_be_shared_is_refused(name, path):
    file = forged.of(holding(NESTED[name]), **({"a": MIB} if name == "arrays" else {}))
    refused(forged.write(path, file), "grows too large")


def test_doublings_without_end_do_not_take_time_to_count(path):
    node = doubled([1], lambda same: [same, same], 15_000)
    refused(forged.write(path, forged.of(holding(node))), "grows too large")


KEYS = {
    "integers": lambda k: k * COLLIDING,
    "floats": lambda k: float(k * 2**61),
    "tuples": lambda k: {"tuple": [k * COLLIDING]},
    "tuples of tuples": lambda k: {"tuple": [1, {"tuple": [k * COLLIDING]}]},
    "numbers of NumPy": lambda k: {"number": float(k * 2**61), "dtype": "<f8"},
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("kind", ["set", "frozenset", "dict"])
def test_keys_whose_hashes_collide_are_few(kind, keys, path):
    found = [KEYS[keys](k) for k in range(1, 8000)]
    node = {kind: [[key, 1] for key in found] if kind == "dict" else found}
    refused(forged.write(path, forged.of(holding(node))), "too many parts, or keys")


def test_many_words_and_classes_are_no_keys_that_collide(path):
    words = {f"word {k}": k for k in range(50_000)}
    model = loclin.ML3Classifier(class_weight=dict.fromkeys(range(4000), 1.0), random_state=words)
    loclin.io.save(model, path)
    again = loclin.io.load(path)
    assert again.class_weight == model.class_weight
    assert again.random_state == words


CYCLES = {
    "itself": {"same": 0},
    "a list": [{"same": 1}],
    "a dict": pairs(a={"same": 1}),
    "an array": {"objects": [{"same": 1}], "shape": [1]},
    "a set": {"set": [{"frozenset": []}, {"same": 1}]},
    "an estimator in it": of_class("sklearn.pipeline.Pipeline", steps=[{"same": 1}]),
}


@pytest.mark.parametrize("name", CYCLES)
def test_what_holds_itself_is_neither_loaded_nor_saved(name, path):
    refused(forged.write(path, forged.of(holding(CYCLES[name]))), "holds itself")
    model = loclin.ML3Classifier()
    model.random_state = [model]
    with pytest.raises(ValueError, match="the model cannot be saved: something in it holds itself"):
        loclin.io.save(model, path)


def test_nesting_is_bounded_in_both_ways(path):
    def nested(n):
        return reduce(lambda inner, _: [inner], range(n), [])

    refused(forged.write(path, forged.of(holding(nested(300)))), "nested deeper than 100")
    assert repr(loaded(path, nested(90))) == repr(nested(90))
    for n in (300, 2000):
        with pytest.raises(ValueError, match="cannot be saved: nested deeper than 100 levels"):
            loclin.io.save(loclin.ML3Classifier(random_state=nested(n)), path)


STATE = np.random.RandomState(0).get_state(legacy=False)


def mersenne(pos):
    state = pairs(key={"array": "k"}, pos=pos)
    return pairs(bit_generator="MT19937", state=state, has_gauss=0, gauss=0.0)


def philox(pos):
    state = pairs(counter=[0] * 4, key=[0] * 2)
    return pairs(bit_generator="Philox", state=state, buffer=[0] * 4, buffer_pos=pos,
                 has_uint32=0, uinteger=0)  # fmt: skip


def seeded(**seed):
    state = pairs(state=pairs(state=1, inc=1), bit_generator="PCG64", has_uint32=0, uinteger=0)
    seed = {
        "entropy": 1,
        "spawn_key": {"tuple": []},
        "pool_size": 4,
        "n_children_spawned": 0,
    } | seed
    return {"generator": state, "seed": pairs(**seed)}


NUMBERS = {
    "a place before the numbers of a random state": {"random_state": mersenne(-5000)},
    "a place beyond the numbers of a random state": {"random_state": mersenne(10**6)},
    "the same of a generator": {"generator": mersenne(625), "seed": None},
    "a place before the numbers of Philox": {"generator": philox(-(10**6)), "seed": None},
    "a place beyond them": {"generator": philox(5), "seed": None},
    "a large pool": seeded(pool_size=10**5),
    "seeds of one number many times": seeded(entropy={"array": "c", "shape": [10**7]}),
    "the same within a list": seeded(entropy=[{"array": "c", "shape": [10**7]}]),
    "a constant of many numbers": {"array": "k", "shape": [2, 624]},
    "a constant of long strings": {"array": "u", "shape": [9]},
    "a constant beyond all": {"array": "c", "shape": [2**40]},
    "a constant of negative length": [{"array": "c", "shape": [-(2**40)]}],
    "a struct": {"dtype": "f8,f8"},
    "another spelling": {"dtype": "float"},
    "a number of letters": {"number": "1", "dtype": "<f8"},
    "a number of numbers": {"number": [1.0] * 9, "dtype": "<f8"},
    "a word that is none": {"number": 3, "dtype": "<U1"},
    "bytes": {"number": "a", "dtype": "|S1"},
    "a place from behind": [{"same": -1}],
    "a place that is true": [{"same": True}],
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_reach_too_far_are_refused(name, path):
    arrays = {"k": STATE["state"]["key"], "c": np.array(0.0), "u": np.array("a" * 99)}
    refused(forged.write(path, forged.of(holding(NUMBERS[name]), **arrays)), "is damaged")


def test_generators_that_are_sound_are_loaded(path):
    key = STATE["state"]["key"]
    assert loaded(path, {"random_state": mersenne(624)}, k=key).rand() >= 0
    assert loaded(path, {"generator": philox(4), "seed": None}).random() >= 0
    assert loaded(path, seeded(entropy=[1, 2])).random() >= 0


SHORT = {
    "lists": [[]] * 60_000,
    "random states": [{"random_state": mersenne(1)}] + [{"random_state": {"same": 3}}] * 25_000,
    "sparse matrices": [{"array": "a"}, {"array": "b"}, {"array": "c"}]
    + [{"csr": [{"same": 2}, {"same": 3}, {"same": 4}], "shape": [1, 1], "is_array": False}] * 9999,
    "sets": [{"set": [k * COLLIDING for k in range(1000)]}] * 40,
}


@pytest.mark.parametrize("name", SHORT)
def test_small_files_that_take_long_to_make_are_refused(name, path):
    arrays = {"k": STATE["state"]["key"], "a": np.ones(1), "b": np.zeros(1, "i4"),
              "c": np.array([0, 1], "i4")}  # fmt: skip
    forged.write(path, forged.of(holding(SHORT[name]), **arrays))
    assert path.stat().st_size < 30_000
    refused(path, "too many parts")


def test_names_from_files_cannot_write_on_terminals(path):
    node = [of_class(f"a\x1b[2J\n{k}.\ud800" + "x" * 500) for k in range(500)]
    message = refused(forged.write(path, forged.of(holding(node))), "names a")
    assert r"\x1b[2J" in message
    file = forged.of(None)
    file.tree |= {"format": 2, "loclin": "9\n\x1b[2J" * 999}
    refused(forged.write(path, file), "Upgrade to loclin 9")


BROKEN = [
    b"[" * 10**6,
    b'{"format": 1}',
    b"[]",
    b'{"format": ' + b"1" * 5000 + b"}",
    b"\xff\xfe",
    b'{"format": 1, "model": {"array": NaN}}',
    b'{"format": 1, "model": {"same": 1e999}}',
]


@pytest.mark.parametrize("letters", BROKEN, ids=range(len(BROKEN)))
def test_weird_json_is_refused(letters, path):
    refused(forged.write(path, forged.of(None), letters=letters), "is damaged")


def test_too_little_memory_is_told(path, monkeypatch):
    def full(*_):
        raise MemoryError

    loclin.io.save(loclin.ML3Classifier(random_state=MIB), path)
    monkeypatch.setattr(zipfile.ZipFile, "read", full)
    refused(path, "damaged .MemoryError")


# What an estimator may say.


def test_the_folder_of_a_pipeline_is_neither_saved_nor_loaded(path, tmp_path):
    cache = tmp_path / "cache"
    steps = [("scale", StandardScaler()), ("model", loclin.ML3Classifier())]
    loclin.io.save(Pipeline(steps, memory=str(cache)), path)
    assert b"cache" not in json.dumps(forged.read(path).tree).encode()
    assert loclin.io.load(path).memory is None
    for name in ("sklearn.pipeline.Pipeline", "sklearn.cluster.FeatureAgglomeration"):
        for memory in (str(cache), {"number": str(cache), "dtype": f"<U{len(str(cache))}"}):
            node = of_class(name, memory=memory)
            assert loaded(path, node).memory is None
    assert not cache.exists()


@pytest.mark.parametrize("kind", [CountVectorizer, HashingVectorizer, TfidfVectorizer])
def test_vectorizers_that_read_files_are_neither_saved_nor_loaded(kind, path):
    for source in ("filename", "file"):
        with pytest.raises(ValueError, match=r"steps\[0\].* cannot be saved: with input="):
            loclin.io.save(make_pipeline(kind(input=source), loclin.ML3Classifier()), path)
        for node in (source, {"number": source, "dtype": f"<U{len(source)}"}, {"array": "a"}):
            name = f"sklearn.feature_extraction.text.{kind.__name__}"
            file = forged.of(of_class(name, input=node), a=np.array(source))
            refused(forged.write(path, file), "that reads the files")


PLAIN = [
    *(r"(?u)\b\w\w+\b", r"\w+", r"[a-z]+", r"\S+", r"[^,;)]+", r"\b[a-zA-Z]{3,}\b"),
    *(r"(?i)\b(\w+)\b", r"[]+*]+", r"\(\w+\)", "a|bc|d+", r"(?u)\b[\w'-]+\b", ".", "", r"\d{2}"),
]
RULING = [
    *(r"(a+)+$", r"(a|a)*$", r"(?:a?){30}a{30}", "a?a?aa", r"\w*\w*x", r"(\w+)\1", "((a)b)*"),
    *(r"(?P<n>a)+", "(a*)*", r"([(]a+)+", r"[a-z]+(?:-[a-z]+)*", r"(?x)(a +) +", "{a+a+}"),
    *(r"(?#)(a+)+", r"\\(a+)+", r"[\]](a+)+", r"(?=(a+))\1", "a" * 300),
]


def test_plain_patterns_end_soon():
    assert [one for one in PLAIN if not ends_soon(one)] == []
    assert [one for one in RULING if ends_soon(one)] == []


def test_patterns_of_columns_and_their_names_are_looked_at(path):
    columns = ColumnTransformer(
        [("a", StandardScaler(), make_column_selector(pattern="(a+)+$"))],
        verbose_feature_names_out="{feature_name:>1000000000}",
    )
    loclin.io.save(make_pipeline(columns, loclin.ML3Classifier()), path)
    refused(path, r"has pattern='\(a")
    refused(path, "has verbose_feature_names_out='{feature_name:>", trusted=["(a+)+$"])
    both = ["(a+)+$", "{feature_name:>1000000000}"]
    assert loclin.io.load(path, trusted=both)[0].verbose_feature_names_out == both[1]
    columns.set_params(verbose_feature_names_out="{transformer_name}-{feature_name}")
    loclin.io.save(columns, path)
    assert loclin.io.load(path, trusted=both[:1]).verbose_feature_names_out.startswith("{tr")


# Functions.


def halved(X):
    return X / 2


class Holder:
    @staticmethod
    def doubled(X):
        return 2 * X


@pytest.mark.parametrize("function", [halved, Holder.doubled, special.expit, np.nan_to_num])
def test_functions_come_back_where_they_are_trusted(function, path):
    model = make_pipeline(FunctionTransformer(function), loclin.ML3Classifier())
    loclin.io.save(model, path)
    name = function.__name__
    message = refused(path, rf"names \S*\.{name}, which loclin does not load")
    assert f"load(path, trusted=[{name}])" in message
    refused(path, "which loclin does not load", trusted=[np.log, os.path.join])
    assert loclin.io.load(path, trusted=[function])[0].func is function


def test_plain_functions_need_no_trust(path):
    model = make_pipeline(FunctionTransformer(np.log1p, inverse_func=np.expm1), SelectKBest(chi2))
    loclin.io.save(model, path)
    again = loclin.io.load(path)
    assert (again[0].func, again[0].inverse_func) == (np.log1p, np.expm1)
    assert again[1].score_func is chi2
    assert "sklearn.feature_selection.chi2" in json.dumps(forged.read(path).tree)


def test_functions_without_an_import_path_are_not_saved(path):
    def local(X):
        return X

    gone = type(halved)(halved.__code__, {}, "halved")  # another of the same name
    gone.__module__, gone.__qualname__ = halved.__module__, "halved"
    for function in (lambda X: X, local, gone):
        with pytest.raises(ValueError, match=r"steps\[0\].*cannot be saved: .* has none\. Move it"):
            loclin.io.save(make_pipeline(FunctionTransformer(function)), path)


def test_functions_and_classes_are_not_mistaken_for_one_another(path):
    name = f"{halved.__module__}.halved"
    for node in (of_class(name), {"tuple": [1], "class": name}, {"enum": name, "value": 1}):
        refused(forged.write(path, forged.of(holding(node))), "does not load", trusted=[halved])
    for name in ("loclin.ML3Classifier", "os.system", "numpy.load", "numpy.log1p.reduce"):
        node = {"function": name}
        refused(forged.write(path, forged.of(holding(node))), "does not load", trusted=[halved])


@pytest.mark.parametrize("wrong", [3, os.system, lambda X: X])
def test_trusted_names_what_it_takes(wrong, path):
    with pytest.raises(ValueError, match=r"trusted names .*; it takes classes, functions that can"):
        loclin.io.save(loclin.ML3Classifier(), path, trusted=[wrong])


# What is saved is loaded.


def test_constants_are_saved_in_full_where_a_file_may_not_have_them(path):
    ones = [np.broadcast_to(np.float32(k), 2**24) for k in (1, 2, 3)]
    words = np.broadcast_to(np.array("a word"), 5)
    parts = (np.broadcast_to(2.0, 3), np.array([0, 1, 2]), np.array([0, 3]))
    matrix = sparse.csr_matrix(parts, shape=(1, 3))
    loclin.io.save(loclin.ML3Classifier(random_state=[*ones, words, matrix]), path)
    assert 2**26 < path.stat().st_size < 2**26 + 10_000
    again = loclin.io.load(path).random_state
    assert [found[-1] for found in again[:3]] == [1, 2, 3]
    assert again[3].tolist() == words.tolist()
    assert again[4].toarray().tolist() == [[2, 2, 2]]


def test_members_share_what_they_hold(path):
    shared = StandardScaler()
    shared.mean_ = np.zeros(10**5)
    model = Pipeline([(f"s{k}", shared) for k in range(60)])
    loclin.io.save(model, path)
    again = loclin.io.load(path)
    assert len({id(step) for _, step in again.steps}) == 1
    assert len(clone(again).steps) == 60


def test_an_empty_string_of_numpy_comes_back(path):
    loclin.io.save(loclin.ML3Classifier(random_state=[np.str_(""), np.dtype(str)]), path)
    assert loclin.io.load(path).random_state == [np.str_(""), np.dtype(str)]
    with pytest.raises(ValueError, match=r"dtype <U0.* cannot be saved"):
        loclin.io.save(loclin.ML3Classifier(random_state=np.ndarray(3, "<U0")), path)
