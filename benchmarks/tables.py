"""Ten tables as people have them, and what classifiers learn of each.

Numbers, categories, dates, texts and gaps, as a CSV file has them; the label hangs on several
columns, and on some of them together. All is random, and the same for the same seed.

``python -m benchmarks.tables [NAME ...]`` encodes each table and prints what its columns are, and
error, log loss and AUC of a quarter of the rows. Each classifier stands behind a `TableEncoder`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._timing import pinned_threads
from loclin import L3MClassifier, LocallyLinearEnsemble, ML3Classifier
from loclin.tables import TableEncoder

TARGET = "target"
Columns = dict[str, Any]
Made = tuple[Columns, NDArray[Any]]


def _days(rng: Any, n: int, first: str, span: int) -> NDArray[Any]:
    """Return dates between the first and `span` days later."""
    return np.datetime64(first) + rng.integers(0, span, n).astype("timedelta64[D]")


def _labels(rng: Any, scores: NDArray[Any], share: float = 0.35, noise: float = 0.6) -> Any:
    """Return 1 where a noisy score is among the highest share."""
    noisy = (scores - scores.mean()) / scores.std() + rng.logistic(0, noise / 1.8, len(scores))
    return (noisy > np.quantile(noisy, 1 - share)).astype(int)


def _gaps(rng: Any, values: Any, share: float, mark: Any = None) -> NDArray[Any]:
    """Return values of which some are missing."""
    values = np.array(values, dtype=object)
    values[rng.random(len(values)) < share] = mark
    return values


def churn(rng: Any, n: int) -> Made:
    """Make customers: what they pay matters where they can leave each month."""
    contract = rng.choice(["monthly", "one year", "two years"], n, p=[0.55, 0.3, 0.15])
    charge, tenure = rng.gamma(4, 15, n).round(2), rng.integers(0, 72, n)
    tickets, paperless = rng.poisson(1.2, n), rng.random(n) < 0.6
    pay = rng.choice(["card", "bank transfer", "cheque", "cash"], n)
    scores = (
        (contract == "monthly") * (0.04 * charge - 0.6) - 0.03 * tenure
        + 0.5 * tickets * (tenure < 12) + 0.4 * (pay == "cheque") * paperless
    )  # fmt: skip
    columns = {
        "customer_id": rng.permutation(n) + 10_000,
        "signup": _days(rng, n, "2019-01-01", 1800),
        "contract": _gaps(rng, contract, 0.04),
        "tenure": tenure,
        "charge": _gaps(rng, charge, 0.05),
        "total": (charge * tenure).round(2),
        "tickets": tickets,
        "paperless": np.where(paperless, "Yes", "No"),
        "payment": pay,
        "region": rng.choice(["north", "south", "east", "west"], n),
    }
    return columns, np.where(_labels(rng, scores), "left", "stayed")


def credit(rng: Any, n: int) -> Made:
    """Make loans: what is owed counts by what is earned; missing values have marks of their own."""
    income = rng.lognormal(10.3, 0.5, n).round(-2)
    amount, months = rng.lognormal(8.7, 0.8, n).round(-1), rng.choice([12, 24, 36, 48, 60], n)
    late, age = rng.poisson(0.5, n), rng.integers(19, 75, n)
    job = rng.choice(["skilled", "unskilled", "self-employed", "management", "none"], n)
    home = rng.choice(["own", "rent", "free"], n, p=[0.5, 0.4, 0.1])
    scores = (
        1.2 * np.log(amount / income * 12 / months + 0.1) + 0.7 * late
        + 0.8 * (job == "self-employed") * (home == "rent") - 0.02 * np.abs(age - 48)
    )  # fmt: skip
    columns = {
        "": np.arange(n),
        "income": _gaps(rng, income, 0.08, "?"),
        "amount": [f"{value:,.0f}" for value in amount],
        "months": months,
        "rate": [f"{value:.1f}%" for value in rng.uniform(3, 14, n)],
        "age": _gaps(rng, age, 0.03, "NA"),
        "job": job,
        "housing": home,
        "late_payments": late,
        "purpose": rng.choice(["car", "furniture", "education", "business", "repairs"], n),
        "telephone": rng.choice(["yes", "no"], n),
    }
    return columns, np.where(_labels(rng, scores, 0.3), "bad", "good")


def sensors(rng: Any, n: int) -> Made:
    """Make logs of machines: faults come at night and in summer, and where heat meets load."""
    stamps = np.datetime64("2023-01-01T00:00:00") + rng.integers(0, 365 * 86_400, n)
    hour = (stamps.astype("int64") % 86_400) / 3_600
    month = stamps.astype("datetime64[M]").astype(int) % 12
    heat = 20 + 8 * np.sin(month / 12 * 2 * np.pi - 1.5) + rng.normal(0, 3, n)
    load, vibration = rng.beta(2, 2, n), rng.gamma(2, 0.4, n)
    pressure, device = rng.normal(5, 0.7, n), rng.choice([f"pump-{k:02d}" for k in range(24)], n)
    weak = np.isin(device, ["pump-03", "pump-11", "pump-19"])
    scores = (
        0.15 * (heat - 20) * load * 2 + 1.2 * (np.abs(hour - 3) < 3)
        + np.abs(pressure - 5) + weak * vibration
    )  # fmt: skip
    columns = {
        "time": [str(stamp).replace("T", " ") for stamp in stamps],
        "device": device,
        "temperature": _gaps(rng, heat.round(2), 0.06, "nan"),
        "load": load.round(3),
        "vibration": _gaps(rng, vibration.round(4), 0.1, "-"),
        "pressure": pressure.round(3),
        "status": rng.choice(["OK", "WARN", "OFF"], n, p=[0.9, 0.08, 0.02]),
        "firmware": rng.choice(["1.2.0", "1.3.1", "2.0.0"], n),
    }
    return columns, np.where(_labels(rng, scores, 0.2), "fault", "fine")


def survey(rng: Any, n: int) -> Made:
    """Make answers: two kinds of people, and who does not answer tells something."""
    kind = rng.integers(0, 2, n)
    answers = np.clip(np.round(3 + rng.normal(0, 1.2, (n, 12))), 1, 5).astype(int)
    age = rng.integers(16, 90, n)
    silent = rng.random(n) < 0.15 + 0.2 * kind
    scores = (
        np.where(kind, answers[:, 0] - answers[:, 1], answers[:, 1] - answers[:, 0])
        + 0.5 * np.abs(answers[:, 2] - 3) * (age > 50) + 1.2 * silent + 0.4 * answers[:, 3]
    )  # fmt: skip
    columns: Columns = {"respondent": [f"R{k:06d}" for k in rng.permutation(n)]}
    for k in range(12):
        columns[f"q{k + 1}"] = _gaps(rng, answers[:, k], 0.08, rng.choice(["NA", "n/a"]))
    agree = np.array(["disagree", "neutral", "agree"])
    columns |= {
        "income": np.where(silent, "", (rng.lognormal(10, 0.4, n)).round(0).astype(int)),
        "age": age,
        "member": np.where(kind, "y", "n"),
        "opinion": agree[np.clip(answers[:, 4] // 2, 0, 2)],
        "date": pd.Series(_days(rng, n, "2024-02-01", 90)).dt.strftime("%d/%m/%Y"),
    }
    return columns, np.where(_labels(rng, scores, 0.45), "yes", "no")


def reviews(rng: Any, n: int) -> Made:
    """Make texts beside numbers: a word means the other thing where stars are few."""
    good = ["great", "love", "perfect", "excellent", "happy", "recommend", "quality", "easy"]
    bad = ["broken", "refund", "terrible", "slow", "cheap", "useless", "waste", "returned"]
    plain = [f"{a}{b}" for a in ("pro", "con", "mat", "sub", "del", "lin")
             for b in ("duct", "tent", "vice", "ivery", "kage", "tion", "ter", "ward")]  # fmt: skip
    mood, stars = rng.normal(0, 1, n), rng.integers(1, 6, n)
    sarcastic = stars == 1
    tone = np.where(sarcastic, -mood, mood)
    texts = []
    for k in range(n):
        said = rng.choice(good if tone[k] > rng.normal(0, 0.7) else bad, rng.integers(1, 4))
        texts.append(" ".join(rng.permutation([*said, *rng.choice(plain, rng.integers(4, 14))])))
    helpful, price = rng.poisson(3, n), rng.gamma(3, 12, n)
    scores = 1.5 * mood + 0.3 * (stars - 3) * (price > 30) + 0.1 * helpful
    columns = {
        "review": _gaps(rng, texts, 0.03),
        "stars": stars,
        "price": [f"${value:,.2f}" for value in price],
        "helpful": helpful,
        "verified": rng.choice(["True", "False"], n),
        "category": rng.choice(["books", "garden", "kitchen", "toys", "music"], n),
        "posted": pd.Series(_days(rng, n, "2022-01-01", 700)).dt.strftime("%b %d, %Y"),
    }
    return columns, np.where(_labels(rng, scores, 0.5), "keeps", "returns")


def prices(rng: Any, n: int) -> Made:
    """Make houses, written with decimal commas: a garden counts where the city is far."""
    area, rooms = rng.gamma(9, 11, n), rng.integers(1, 8, n)
    far, year = rng.gamma(2, 6, n), rng.integers(1890, 2024, n)
    garden = rng.random(n) < 0.4
    price = 2_500 * area * (1.2 - 0.02 * far) * np.exp(rng.normal(0, 0.15, n))
    scores = (
        0.03 * area - price / 150_000 + 0.08 * garden * far - 0.6 * (year < 1945) * (far > 12)
        + 0.5 * (rooms > area / 25)
    )  # fmt: skip

    def written(values: NDArray[Any], decimals: int) -> list[str]:
        shown = (f"{value:,.{decimals}f}" for value in values)
        return [text.translate(str.maketrans(",.", ".,")) for text in shown]

    columns = {
        "Preis": [f"{text} €" for text in written(price, 2)],
        "Fläche": written(area, 1),
        "Zimmer": rooms,
        "Baujahr": year,
        "Entfernung": _gaps(rng, written(far, 2), 0.05, "k.A."),
        "Garten": np.where(garden, "ja", "nein"),
        "PLZ": rng.choice([f"{k:05d}" for k in range(1067, 1099)], n),
        "Inserat": pd.Series(_days(rng, n, "2024-01-01", 300)).dt.strftime("%d.%m.%Y"),
    }
    return columns, np.where(_labels(rng, scores, 0.4), "verkauft", "frei")


def shops(rng: Any, n: int) -> Made:
    """Make categories of many values: each shop and product has a rate of its own."""
    n_shops, n_products = 400, 150
    of_shop, of_product = rng.normal(0, 1, n_shops), rng.normal(0, 1, n_products)
    shop = (rng.random(n) ** 2 * n_shops).astype(int)
    product = (rng.random(n) ** 2 * n_products).astype(int)
    discount, weekend = rng.uniform(0, 0.5, n), rng.random(n) < 0.28
    scores = of_shop[shop] + of_product[product] * (1 + weekend) + 3 * discount * weekend
    columns = {
        "order": [f"O-{k}" for k in rng.permutation(n)],
        "shop": [f"shop {k}" for k in shop],
        "product": [f"P{k:04d}" for k in product],
        "city": [f"city {k // 8}" for k in shop],
        "discount": [f"{100 * value:.0f} %" for value in discount],
        "weekend": np.where(weekend, "t", "f"),
        "quantity": rng.poisson(2, n) + 1,
        "channel": rng.choice(["web", "app", "store"], n),
    }
    return columns, np.where(_labels(rng, scores, 0.4), "again", "once")


def fraud(rng: Any, n: int) -> Made:
    """Make payments of which 2 % are fraud: odd hours, new countries and sums just below limits."""
    amount, hour = rng.lognormal(3.5, 1.2, n), rng.integers(0, 24, n)
    card = rng.choice(["NL", "DE", "FR", "GB", "US"], n, p=[0.4, 0.25, 0.15, 0.1, 0.1])
    shop = np.where(rng.random(n) < 0.8, card, rng.choice(["NL", "NG", "RO", "US"], n))
    age, tries = rng.exponential(400, n).astype(int), rng.poisson(0.3, n)
    scores = (
        0.8 * np.log(amount) * (card != shop) + 1.5 * (hour < 5) * (age < 90) + 1.2 * tries
        + 2 * ((amount % 100) > 95)
    )  # fmt: skip
    columns = {
        "transaction": [f"{k:x}" for k in rng.integers(2**40, 2**44, n)],
        "amount": amount.round(2),
        "card_country": card,
        "shop_country": shop,
        "hour": hour,
        "account_age": age,
        "tries": tries,
        "device": _gaps(rng, rng.choice(["ios", "android", "web"], n), 0.1, "unknown"),
        "merchant": [f"m{k}" for k in (rng.random(n) ** 3 * 800).astype(int)],
    }
    return columns, _labels(rng, scores, 0.02, 0.2)


def many_rows(rng: Any, n: int) -> Made:
    """Make twelve columns of `churn` and `shops`, for many rows."""
    left, first = churn(rng, n)
    right, second = shops(rng, n)
    kept = ("contract", "tenure", "charge", "tickets", "paperless", "payment", "signup")
    columns = {name: left[name] for name in kept}
    columns |= {name: right[name] for name in ("shop", "product", "discount", "weekend", "channel")}
    return columns, np.where((first == "left") ^ (second == "again"), "yes", "no")


def wide(rng: Any, n: int) -> Made:
    """Make three thousand columns, of which ten tell something."""
    numbers = rng.normal(0, 1, (n, 2800)).round(3)
    categories = rng.choice(["low", "mid", "high"], (n, 200))
    scores = (
        numbers[:, :6] @ [1, -1, 0.8, 0.6, -0.6, 0.5]
        + 1.5 * np.where(categories[:, 0] == "high", numbers[:, 6], -numbers[:, 6])
        + (categories[:, 1] == "low")
    )
    columns = {f"x{k}": numbers[:, k] for k in range(2800)}
    columns |= {f"c{k}": categories[:, k] for k in range(200)}
    return columns, _labels(rng, scores, 0.5)


class Table(NamedTuple):
    """How a table is made: its columns and labels, its rows, and the separator of its file."""

    make: Callable[[Any, int], Made]
    n_rows: int
    separator: str = ","


TABLES = {
    "churn": Table(churn, 4_000),
    "credit": Table(credit, 4_000),
    "sensors": Table(sensors, 4_000),
    "survey": Table(survey, 3_000),
    "reviews": Table(reviews, 3_000),
    "prices": Table(prices, 3_000, ";"),
    "shops": Table(shops, 6_000),
    "fraud": Table(fraud, 10_000),
    "many_rows": Table(many_rows, 200_000),
    "wide": Table(wide, 1_000),
}
NAMES = list(TABLES)
MODELS: dict[str, Callable[[], Any]] = {
    "ML3": lambda: make_pipeline(ML3Classifier(random_state=0)),
    "HistGradientBoosting": lambda: make_pipeline(HistGradientBoostingClassifier(random_state=0)),
    "L3M": lambda: make_pipeline(L3MClassifier(random_state=0)),
    "ensemble": lambda: make_pipeline(LocallyLinearEnsemble(random_state=0)),
    "LogisticRegression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000)
    ),
}
FAST = "ML3", "HistGradientBoosting"


def write(name: str, folder: str | Path, n_rows: int | None = None, seed: int = 0) -> Path:
    """Write a table as a CSV file, and return its path."""
    table = TABLES[name]
    columns, y = table.make(np.random.default_rng(seed), n_rows or table.n_rows)
    path = Path(folder) / f"{name}.csv"
    frame = pd.DataFrame(columns | {TARGET: y})
    frame.to_csv(path, index=False, sep=table.separator, lineterminator="\n")
    return path


def read(path: str | Path) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a table as text, only the empty cells missing, and its labels."""
    separator = TABLES[Path(path).stem].separator
    frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""])
    named = frame.rename(columns=lambda name: "" if name.startswith("Unnamed: ") else name)
    return named.drop(columns=TARGET), named[TARGET].to_numpy(object).astype(str)


def measured(model: Pipeline, parts: list[Any]) -> tuple[float, float, float, float]:
    """Error in percent, log loss and AUC of the rows held out, and seconds of the fit."""
    table, held_out, y, right = parts
    start = time.process_time()
    model.fit(table, y)
    seconds = time.process_time() - start
    shares = model.predict_proba(held_out)
    error = 100 * float(np.mean(model.classes_[shares.argmax(axis=1)] != right))
    auc = float(roc_auc_score(right == model.classes_[1], shares[:, 1]))
    return error, float(log_loss(right, shares)), auc, seconds


def main(arguments: list[str] | None = None) -> None:
    """Print what each table's columns are, and what classifiers learn of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=NAMES)
    parser.add_argument("--rows", type=int, help="rows of each table")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with pinned_threads(1), tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            table, y = read(write(name, folder, options.rows))
            start = time.process_time()
            encoder = TableEncoder()
            width = encoder.fit_transform(table, y).shape[1]
            seconds = time.process_time() - start
            kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(encoder.kinds_.values()).items())
            print(f"{name}: {len(y):,} rows; {kinds}; {width} features in {seconds:.2f} s")
            parts = train_test_split(table, y, test_size=0.25, random_state=0, stratify=y)
            for model in FAST if len(y) > 50_000 else MODELS:
                found = measured(make_pipeline(TableEncoder(), *MODELS[model]()), parts)
                print("  {:22}error {:5.1f} %  log loss {:.3f}  AUC {:.3f}  fit {:6.1f} s".format(
                    model, *found), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
