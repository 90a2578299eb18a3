"""The reproduction: a killed run goes on, nothing is done twice, the page counts what is there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import choices, ml3_tables
from benchmarks.reproduce import __main__ as command
from benchmarks.reproduce import entries, judge, page, published, quick, runner, shapes
from benchmarks.reproduce.defaults import SETS, SYSTEMS
from benchmarks.reproduce.drawings import draw
from benchmarks.reproduce.entries import Entry, all_entries
from benchmarks.reproduce.store import Folder

ROOT = Path(__file__).parents[1]
TOY = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from benchmarks.reproduce import runner
from benchmarks.reproduce.entries import Entry

def part(results, name):
    with (results / "log").open("a") as log:
        log.write(f"{name}\\n")
    time.sleep(0.1)
    return 1.0

def entries(results):
    def of(n):
        names = [f"{n}.{k}" for k in range(3)]
        return lambda cache: {"error %": [
            cache(f"set | {name}", {"a": 1}, lambda: part(results, name)) for name in names
        ]}
    return [Entry("toy", "table 1", "set", str(n), of(n), n) for n in range(4)]

if __name__ == "__main__":
    runner.run(entries(Path(sys.argv[1])), Path(sys.argv[1]), 1, False)
"""


def test_a_killed_run_goes_on_and_does_nothing_twice(tmp_path):
    log = tmp_path / "log"
    start = [sys.executable, "-c", TOY, str(tmp_path)]
    first = subprocess.Popen(start, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not log.exists() or len(log.read_text().splitlines()) < 6:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    begun = log.read_text().splitlines()
    assert 6 <= len(begun) < 12
    kept = Folder(tmp_path / "toy").stored
    assert len(kept) >= 6

    toy = {"__name__": "toy"}
    exec(TOY, toy)
    for _ in range(2):
        done = runner.run(toy["entries"](tmp_path), tmp_path, 1, False)
        assert len(done) == 4
        assert not any(outcome.error for outcome in done)
    assert not any(outcome.computed for outcome in done)
    computed = log.read_text().splitlines()
    assert set(computed) == {f"{n}.{k}" for n in range(4) for k in range(3)}
    again = [name for name in computed[len(begun) :] if name in begun]
    assert again in ([], begun[-1:])  # only the one that was killed in its midst
    assert len(computed) == 12 + len(again)
    assert kept.items() <= Folder(tmp_path / "toy").stored.items()


def chosen(folder, setting, stop_after=99):
    """Choose by cross-validation, killed where it asks for one fold more; the folds it computed."""
    y = np.arange(20) % 2
    asked = []

    def fold_errors(X, y, fold, case, ks):
        if len(asked) == stop_after:
            raise KeyboardInterrupt
        asked.append((case, ks, int(fold[1][0])))
        return [10 + abs(k) + len(case[0]) / 10 + fold[1][0] / 100 for k in ks]

    cache, key, settings = Folder(folder), "set | name | choice", {"a": setting}

    def choose():
        notes = cache.notes(key, settings)
        return choices.Search(fold_errors, y[:, None], y, 1, notes).choose(["raw", "no"], (), {})

    try:
        return cache(key, settings, choose), asked
    except KeyboardInterrupt:
        return None, asked


def test_a_killed_choice_goes_on_with_the_next_fold(tmp_path):
    whole, all_asked = chosen(tmp_path / "whole", 1)
    folder = tmp_path / "killed"
    stopped = [chosen(folder, 1, n) for n in (7, 5)]
    assert [(found, len(asked)) for found, asked in stopped] == [(None, 7), (None, 5)]
    (file,) = (folder / ".unfinished").glob("*")
    file.write_text(file.read_text()[:-9])  # the kill came while the twelfth fold was written
    found, asked = chosen(folder, 1)
    assert found == whole
    assert [*stopped[0][1], *stopped[1][1][:4], *asked] == all_asked
    assert not file.exists()
    assert chosen(folder, 1) == (whole, [])

    chosen(folder, 2, 3)
    assert chosen(folder, 3) == (whole, all_asked)  # what its notes depend on has changed


def test_killed_fits_go_on_with_the_next_seed(tmp_path):
    fitted: list[int] = []

    def errors(stop_at, setting=1):
        def fit(seed):
            if seed == stop_at:
                raise KeyboardInterrupt
            fitted.append(seed)
            return seed / 10, setting

        cache, settings = Folder(tmp_path), {"a": setting}
        try:
            return choices.each_seed(cache, "set | name | test", settings, fit, range(5), 1)
        except KeyboardInterrupt:
            return None

    whole = [[seed / 10, 1] for seed in range(5)]
    assert [errors(2), errors(4), errors(None), errors(0)] == [None, None, whole, whole]
    assert fitted == [0, 1, 2, 3, 4]
    assert not list((tmp_path / ".unfinished").glob("*"))

    assert [errors(3, 2), errors(None, 3)] == [None, [[seed / 10, 3] for seed in range(5)]]
    assert fitted[5:] == [0, 1, 2, 0, 1, 2, 3, 4]  # what the notes depend on had changed


def test_seconds_of_a_choice_are_those_of_all_its_runs(tmp_path):
    chosen(tmp_path, 1, 7)
    (file,) = (tmp_path / ".unfinished").glob("*")
    first, *lines = file.read_text().splitlines()
    lines = [json.dumps([*json.loads(line)[:2], [100.0, 200.0]]) for line in lines]
    file.write_text("\n".join([first, *lines, ""]))
    chosen(tmp_path, 1)
    seconds = Folder(tmp_path).stored["set | name | choice"]["seconds"]
    assert 700 < seconds[0] < 710
    assert 1400 < seconds[1] < 1410


def test_a_changed_setting_reruns_only_itself(tmp_path):
    done: list[str] = []

    def ask(key, setting):
        return Folder(tmp_path)(key, {"rows": setting}, lambda: done.append(key) or setting)

    assert [ask("a", 1), ask("b/c | d", 1), ask("a", 2), ask("b/c | d", 1), ask("a", 2)] == [
        1, 1, 2, 1, 2
    ]  # fmt: skip
    assert done == ["a", "b/c | d", "a"]
    entry = json.loads((tmp_path / "a.json").read_text())["a"]
    assert entry["made with"]["threads"] == 1
    assert {"python", "loclin", "numpy", "scikit-learn"} <= entry["made with"].keys()
    assert len(entry["seconds"]) == 2


def test_results_of_a_single_file_are_taken_over(tmp_path):
    Folder(tmp_path / "l3m").put("old", {}, 1)
    file = tmp_path / "l3m.json"
    both = {key: {"settings": {"a": key}, "result": 2} for key in ("old", "new")}
    file.write_text(json.dumps(both))
    command.main(["--take", "l3m", str(file), "--results", str(tmp_path)])
    stored = Folder(tmp_path / "l3m").stored
    assert stored["old"]["result"] == 1
    assert stored["new"]["result"] == 2
    assert stored["new"]["settings"] == {"a": "new"}


def fail(cache):
    raise RuntimeError("no luck")


def test_an_entry_that_fails_does_not_stop_the_others(tmp_path, capsys):
    runs = {"a": fail, "b": lambda cache: {"error %": [1.0]}}
    toys = [Entry("toy", "table 1", "set", name, run, 1) for name, run in runs.items()]
    done = runner.run(toys, tmp_path, 1, False)
    assert ["no luck" in outcome.error for outcome in done] == [True, False]
    out = capsys.readouterr().out
    assert "set | a: " in out
    assert "[2/2, 0:00:00 left]" in out
    assert "2 entries, 0 results computed, 1 failed" in runner.closing(done, 1.0, 1)
    assert list(judge.stored_results(tmp_path, toys)) == [("toy", "table 1 | set | b")]


def test_every_published_error_has_an_entry_or_a_reason():
    every, facts = all_entries(), published.published()
    assert len({(e.paper, e.key) for e in every}) == len(every)
    places = {
        published.Key(e.paper, e.table.removeprefix("table "), e.data, e.system, "error %")
        for e in every
    }
    for key in facts:
        if key.metric in ("error %", "mAP %"):
            assert (key in places) != bool(published.why_missing(key)), key
    of_papers = {c.entry.system for c in judge.cells(every, {}) if c.fact is None}
    assert not of_papers


def test_the_modules_agree_with_the_published_figures():
    from benchmarks import l3m_tables, occ_tables, sapl_tables

    facts = published.published()

    def error(*key):
        return facts[published.Key(*key, "error %")].value

    for name, row in occ_tables.ROWS.items():
        for data, (_, paper) in row.cells.items():
            if paper is not None and "local biases" not in name:
                assert error("occ", "2", data, name) == paper
    for name, row in sapl_tables.ROWS.items():
        for data, paper in zip(sapl_tables.SETS, row.paper, strict=True):
            system = name.replace("_lcc", "lcc")
            assert error("sapl", "2", data, system) == pytest.approx(100 - paper)
    for entry in all_entries():
        if (entry.paper, entry.table) == ("l3m", "table 2"):
            fact = judge.fact_of(entry, facts)
            names = {"One vs All Linear SVM": "Linear SVM", "One vs All RBF SVM": "RBF SVM",
                     "One vs All AdaBoost (stumps)": "AdaBoost, stumps", "GDI tree": "tree",
                     "L3M": "L3M, refined"}  # fmt: skip
            row = l3m_tables.ROWS[names.get(entry.system, entry.system)]
            assert fact.value == row.paper[l3m_tables.SETS.index(entry.data)]


def test_reasons_are_of_entries():
    keys = {(e.paper, e.key) for e in all_entries()}
    reasons = tomllib.loads(page.REASONS.read_text())
    assert {(paper, key) for paper, by_key in reasons.items() for key in by_key} <= keys


@pytest.mark.parametrize(
    ("errors", "state"),
    [([5.1, 5.1], "better"), ([5.0, 5.3], "within noise"), ([5.2, 5.2], "worse"),
     ([5.104], "better"), ([5.106], "worse"), (None, "not run yet")],
)  # fmt: skip
def test_marks(errors, state):
    entry = Entry("occ", "table 2", "usps", "LL-SVM", fail, 1)
    fact = published.Fact(5.1, "", True)
    result = None if errors is None else {"error %": errors}
    assert judge.judged(entry, result, fact).state == state
    elsewhere = judge.judged(entry, {"error %": [1.0]}, fact._replace(comparable=False))
    assert elsewhere.state == "not comparable"


def test_ml3_s_published_errors_give_its_published_p_values():
    theirs = {}
    for key, fact in published.published().items():
        if key.paper == "ml3" and key.metric == "error %":
            system = {"LL-SVM": "LLSVM"}.get(key.system, key.system)
            theirs.setdefault(system, {})[key.data] = fact.value
    p = [judge.wilcoxon_p(theirs, "ML3", rival)[0] for rival in ("LLSVM", "C-OCC")]
    np.testing.assert_allclose(p, [0.0419, 0.0166], atol=5e-5)


def test_ranks_and_critical_difference():
    errors = {"a": {"x": 1.0, "y": 2.0, "z": 0.0}, "b": {"x": 1.0, "y": 1.0}}
    ranks, shared = judge.average_ranks(errors)
    assert shared == ["x", "y"]
    assert ranks == {"a": 1.75, "b": 1.25}
    assert judge.average_ranks({"a": {"x": 1.0}, "b": {}}) == ({}, [])
    # Demsar (2006), section 3.2.2: 4 classifiers on 14 sets
    assert judge.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.fixture
def some_results(tmp_path):
    """A few results of entries of each kind."""
    rng = np.random.default_rng(0)
    for e in all_entries():
        cache = Folder(tmp_path / e.paper)
        if e.paper == "defaults" and e.data in list(SETS)[:4]:
            cannot = {"left out": "no"} if (e.data, e.system) == ("heart", "k-NN") else None
            values = {"error %": [rng.random()], "us a row": [1.0], "bytes": [1000]}
            cache.put(e.key, {}, cannot or values)
        elif e.paper == "occ" and e.data == "usps" and e.table == "table 2":
            cache.put(e.key, {}, {"error %": [4.0, 4.2], "train s": [1.0, 1.0]})
        elif e.table == "figure 5":
            X, y = rng.normal(size=(9, 2)), np.arange(9) % 2
            box, points = shapes.grid_of(X)
            cells = shapes.panel("regions", points[:, 0] > 0)
            cache.put(e.key, {}, shapes.maps(box, X, y, [cells]))
    return tmp_path


def test_the_page_shows_what_is_stored_and_what_is_not(some_results):
    path = some_results / "docs" / "reproduction.md"
    cells = page.write(all_entries(), some_results, path)
    text = path.read_text()
    usps = [c for c in cells if (c.entry.paper, c.entry.data) == ("occ", "usps")]
    # 4.10 +- 0.14 against 9.57, 7.82, 5.98, 4.14, 4.38, 3.94, 4.09, 5.78, 5.78, 4.38
    assert judge.counts(usps) == {"better": 8, "within noise": 1, "worse": 1}
    assert judge.reached(usps) == (4, 1, 6, 6)
    assert "Of the 1 others 1 are above\nby less than one standard error" in text
    assert "**LIB-LLSVM + G-OCC** | … (1.72) | 4.10 ± 0.14 (4.14) ✓ | … (6.85) |" in text
    assert "**LIB-LLSVM + C-OCC** | … (1.61) | 4.10 ± 0.14 (3.94) ✗ | … (7.35) |" in text
    assert "occ, table 2, usps, LIB-LLSVM + C-OCC (+0.16, 0.4 s.e.): open: choosing planes" in text
    assert "table 2, letter" not in text  # has a reason, but has not been run
    assert "| LIB-LLSVM + G-OCC | … (75.6) | 1 (22.2) | … (23) |" in text
    assert f"{4 * len(SYSTEMS) - 1} of {len(SETS) * len(SYSTEMS)} cells have a result." in text
    assert "Over 3 sets; critical difference" in text
    assert "cannot" in text
    for name in (*published.MISSING_DATA, *published.MISSING_SYSTEMS):
        assert name in text
    assert {p.name for p in (path.parent / "figures").iterdir()} == {
        "l3m_figure_5.png", "defaults_ranks.png"
    }  # fmt: skip


def test_times_are_ratios_and_what_is_not_known_is_left_out():
    ours, theirs = {("a", "ML3"): 1.0, ("a", "SVC"): 8.0, ("b", "ML3"): 1.0}, {("a", "ML3"): 3.0}
    shown = [
        page.ratios(ours, paper, (data, "ML3"), (data, "SVC"))
        for data, paper in (("a", theirs | {("a", "SVC"): 2.0}), ("a", theirs), ("b", theirs))
    ]
    assert shown == ["0.125 (1.5)", "0.125", "…"]


def test_the_page_says_where_a_reason_is_wanting(some_results, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "REASONS", tmp_path / "reasons.toml")
    page.REASONS.write_text("")
    page.write(all_entries(), some_results, tmp_path / "page.md")
    wanting = "occ, table 2, usps, LIB-LLSVM + C-OCC (+0.16, 0.4 s.e.): no reason tested yet."
    assert wanting in (tmp_path / "page.md").read_text()


def test_the_page_needs_no_data_and_an_empty_folder_is_all_waiting(tmp_path, monkeypatch):
    monkeypatch.delenv("LOCLIN_DATA", raising=False)
    cells = page.write(all_entries(), tmp_path, tmp_path / "page.md")
    assert {cell.state for cell in cells} == {"not run yet"}
    assert judge.reached(cells)[:3] == (0, 0, 0)


def test_lines_and_images_are_drawn(tmp_path):
    curves = {"one run": [1.0, 2.0], "three runs": [[1, 2], [2, 3], [2, 2]], "flat": [[1.5], [1]]}
    pairs = {"one": [[10, 2.0], [20, 1.0]], "other": [[15, 1.0]]}
    draw({"a": shapes.points(pairs, "x", "y")}, tmp_path / "points.png")
    draw({"a": shapes.lines((1, 10), curves, "x", "y", log_x=True)}, tmp_path / "lines.png")
    rows = [("atom 1", np.random.default_rng(0).random((3, 16)), [1, 2, 3])]
    draw({"a": shapes.images(rows, 4)}, tmp_path / "images.png")
    assert min(file.stat().st_size for file in tmp_path.iterdir()) > 1000


def test_words_choose_entries(capsys):
    every = all_entries()
    chosen = command.chosen(["ml3 table 2 heart", "sapl figure 1"], every)
    assert {e.paper for e in chosen} == {"ml3", "sapl"}
    assert len(chosen) == 7
    assert [e.system for e in command.chosen(["l3m table 2 dna L3M"], every)] == ["L3M"]
    assert command.chosen([], every) == every
    with pytest.raises(SystemExit, match="no entry begins with 'svm'"):
        command.chosen(["svm"], every)
    assert command.main(["--list", "ussvm"]) == 0
    assert "ussvm figure 2 usps curves: 0.5 min" in capsys.readouterr().out


def test_quick_changes_settings_and_puts_them_back():
    before = ml3_tables.FOLDS, ml3_tables.ROWS["ML3"].epochs, choices.load
    with quick.quick():
        assert ml3_tables.FOLDS == choices.FOLDS == 2
        assert ml3_tables.ROWS["ML3"].epochs == 3
        assert shapes.GRID == 20
        assert set(entries.SEEDS.values()) == {1}
        part = choices.load("digits")
    assert (ml3_tables.FOLDS, ml3_tables.ROWS["ML3"].epochs, choices.load) == before
    assert 240 <= len(part.y_train) <= 260
    assert set(part.y_train) == set(range(10))


def test_quick_knows_the_constants_that_it_changes():
    for module, changed in quick.CHANGED.items():
        assert changed.keys() <= vars(module).keys()
    for module in quick.MODULES:
        assert getattr(module, "QUICK", {}).keys() <= vars(module).keys()


@pytest.fixture
def digits(monkeypatch):
    """Two classes of digits, eight of their features, in place of every set."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X[y < 2][:, 20:28] / 16.0
    whole = SimpleNamespace(X_train=X, y_train=y[y < 2], X_test=None, y_test=None)
    halves = SimpleNamespace(X_train=X[:180], y_train=y[y < 2][:180], X_test=X[180:],
                             y_test=y[y < 2][180:])  # fmt: skip
    split = ("usps", "letter", "mnist", "segment")
    monkeypatch.setattr(quick, "few_rows", lambda name: halves if name in split else whole)


@pytest.mark.parametrize(
    ("word", "n_curves"),
    [("ml3 figure 1 xor", None), ("ml3 figure 2 usps curves", 4), ("ml3 figure 2 usps, p", 2),
     ("ml3 figure 3", 5), ("l3m figure 3 line", 3), ("l3m figure 4", 2), ("l3m figure 5", None),
     ("defaults table heart k-NN", None), ("ml3 table 2 heart G-OCC", None),
     ("l3m table 2 banana GDI tree", None), ("l3m table 2 segment L3M, convex", None),
     ("occ table 2 usps Linear SVM", None), ("sapl table 2 banana Linear SVM", None)],
)  # fmt: skip
def test_entries_run(word, n_curves, digits, tmp_path):
    (entry,) = command.chosen([word], all_entries())
    (outcome,) = runner.run([entry], tmp_path, 1, True)
    assert not outcome.error
    stored = Folder(tmp_path / entry.paper).stored
    result = stored[entry.key]["result"]
    if n_curves:
        assert len(result["curves"]) == n_curves
    if "shape" in result:
        draw({entry.data: result}, tmp_path / "picture.png")
    else:
        assert 0 <= result["error %"][0] < 50
    (again,) = runner.run([entry], tmp_path, 1, True)
    assert (outcome.computed > 0, again.computed) == (True, 0)
    assert Folder(tmp_path / entry.paper).stored == stored
