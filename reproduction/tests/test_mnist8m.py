"""Deformed digits, and the models that learn a stream of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits

from loclin import datasets
from loclin.datasets import Dataset
from reproduction import page
from reproduction.command import all_entries, chosen
from reproduction.sapl import mnist8m, stream

N = 700  # of the digits: a block and a half, and a round that chunks do not divide
HERE = "like table 2"


@pytest.fixture(scope="module")
def images():
    """Scikit-learn's digits in the size of MNIST's."""
    X, y = load_digits(return_X_y=True)
    large = np.kron(X.reshape(-1, 8, 8) / 16, np.ones((1, 3, 3)))
    return np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(len(X), -1).astype(np.float32), y


@pytest.fixture(scope="module")
def digits_28(images):
    return mnist8m.DeformedDigits(images[0][:N], images[1][:N], n_fields=50)


def joined(chunks):
    return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]


def test_the_first_rows_are_the_digits_and_labels_follow(digits_28, images):
    X, y = joined(digits_28.chunks(3 * N, 400))
    assert X.shape == (3 * N, 784)
    assert X.dtype == np.float32
    assert (X.min(), X.max()) == (0, 1)
    np.testing.assert_array_equal(X[:N], images[0][:N])
    np.testing.assert_array_equal(y, np.tile(images[1][:N], 3))


def test_rows_follow_from_their_number_and_the_seed(digits_28, images):
    X, y = joined(digits_28.chunks(3 * N, 400))
    X_too, y_too = joined(digits_28.chunks(3 * N, 33))
    np.testing.assert_array_equal(X, X_too)
    np.testing.assert_array_equal(y, y_too)
    some, _ = digits_28.rows(2 * N - 5, 2 * N + 300)
    np.testing.assert_array_equal(some, X[2 * N - 5 : 2 * N + 300])
    again, other = (
        mnist8m.DeformedDigits(images[0][:N], images[1][:N], seed, 50).rows(0, 2 * N)[0]
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(again, X[: 2 * N])
    changed = (other != again).any(axis=1)
    assert not changed[:N].any()
    assert changed[N:].mean() > 0.99


def test_deformations_are_small_and_no_two_are_the_same(digits_28):
    rounds = [digits_28.rows(k * N, (k + 1) * N)[0] for k in range(4)]
    for one, other in pairwise(rounds):
        changes = np.abs(one - other).mean(axis=1)
        assert changes.min() > 0
        assert 0.02 < changes.mean() < 0.2
    # nearer to their own digit than to another one's
    far = np.abs(rounds[1] - np.roll(rounds[0], 1, axis=0)).mean()
    assert np.abs(rounds[1] - rounds[0]).mean() < 0.7 * far


def test_an_image_moves_along_its_tangents():
    """A constant field shifts a smooth image, as far as the first order goes."""
    at = np.arange(28)
    down, right = np.meshgrid(at, at, indexing="ij")

    def blob(y, x):
        bump = np.exp(-((down - y) ** 2 + (right - x) ** 2) / 40)
        return bump.astype(np.float32).reshape(1, 1, 784)

    image, by = blob(14, 14), (0.3, -0.4)
    made = mnist8m.DeformedDigits(image[0], np.zeros(1), n_fields=2)
    made.fields[:] = np.array(by, np.float32)[:, None]
    made._round, made._drawn = 1, np.array([[0], [1], [4]])
    found = made.rows(1, 2)[0]
    wanted = blob(14 + by[0], 14 + by[1])[0]
    assert np.abs(found - wanted).max() < 0.2 * np.abs(image[0] - wanted).max()
    for shift, (y, x) in enumerate(mnist8m.SHIFTS):
        made._drawn[2] = shift
        moved = np.roll(found.reshape(28, 28), (y, x), axis=(0, 1))
        inside = made.rows(1, 2)[0].reshape(28, 28)[1:-1, 1:-1]
        np.testing.assert_array_equal(inside, moved[1:-1, 1:-1])


@pytest.mark.parametrize(("down", "right"), mnist8m.SHIFTS)
def test_what_comes_in_is_black(down, right):
    images = np.random.default_rng(0).uniform(1, 2, (3, 28, 28))
    out = np.full_like(images, np.nan)
    mnist8m.translate(images, down, right, out)
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    wanted = wide[:, 1 - down : 29 - down, 1 - right : 29 - right]
    np.testing.assert_array_equal(out, wanted)


def test_fields_are_smooth_and_move_by_a_pixel():
    fields = mnist8m.smooth_fields(40, 0).reshape(-1, 28, 28)
    assert np.sqrt(np.mean(fields**2)) == pytest.approx(mnist8m.DISPLACEMENT, rel=1e-5)
    assert np.abs(np.diff(fields, axis=1)).mean() < 0.25
    assert abs(fields.mean()) < 0.15


def test_entries(images, computed, monkeypatch):
    X, y = (part[:1200] for part in images)

    def load(name):
        parts = (X[:900] * 255, y[:900], X[900:] * 255, y[900:])
        return Dataset(name, *parts, None, None, "digits", "scikit-learn")

    monkeypatch.setattr(datasets, "load", load)
    entries = chosen([f"sapl {HERE}"], all_entries())
    assert [e.system for e in entries] == list(stream.SYSTEMS)
    found = {e.system: computed([e])[e.key] for e in entries}
    for result in found.values():
        assert result["rows"] == stream.N_ROWS
        assert len(result["resident MB"]) == 10
        assert min(result["resident MB"]) > 10
        assert 0 < result["error %"][0] < 40
        for part in ("learning s", "generator s"):
            wall, processor = result[part]
            assert 0 < processor < 2 * wall + 0.1


def test_the_page_says_whose_data_it_is(tmp_path):
    from reproduction.store import Cache

    result = {"error %": [2.0], "rows": 8_100_000, "learning s": [200.0, 190.0],
              "generator s": [30.0, 29.0], "resident MB": [900.0] * 9 + [910.0]}  # fmt: skip
    cache = Cache(tmp_path / "sapl")
    cache.put(f"{HERE} | mnist8m | LLSVM", {}, result)
    page.write(all_entries(), tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "on data made anew by the published recipe" in text
    assert "| LLSVM | 2.00 (3.37) | 8,100,000 | 200 | 190 | 30 | 29 | 900 | 910 |" in text
    assert "| LLC-SAPL | … (2.04) |" in text
