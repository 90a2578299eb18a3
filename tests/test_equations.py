"""Every equation that the code names is in docs/equations.md, and every name there exists."""

import ast
import importlib
import io
import re
import tokenize
from pathlib import Path

import pytest

import loclin

PACKAGE = Path(loclin.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "equations.md").read_text()

# Titles of the page, and the folders that speak of that paper alone; other files name theirs.
FOLDERS = {"ML3": "ml3", "LL-SVM and OCC": "llsvm", "SAPL": "sapl", "L3M": "l3m", "US-SVM": "ussvm",
           "LDKL": "ldkl", "L-MKL": "lmkl", "CSVM": "csvm", "SVM-KNN": "svmknn"}  # fmt: skip

NUMBER = r"\d+(?:\.\d+)?"
NUMBERS = rf"{NUMBER}(?:(?:, {NUMBER})* and {NUMBER}| to {NUMBER})"
ONE = rf"(?:{NUMBER}|\({NUMBER}\))"
ANY_SPELLING = re.compile(
    rf"\b(?:eqn?s?|equations?|alg|algorithms?|thm|theorems?|prop|propositions?|sections?)\b"
    rf"\.? ?{ONE}(?:(?:,|,? to|,? and|-) ?{ONE})*",
    re.I,
)
CANONICAL = re.compile(
    rf"(equation|Equation|Algorithm|Theorem|Proposition|section|Section)"
    rf"(?: ({NUMBER})|s ({NUMBERS}))"
)


def tables():
    """Papers with the rows of their tables: mention, names."""
    parts = re.split(r"^## (.*)$", PAGE, flags=re.M)[1:]
    return {
        title: [
            (cells[0].strip(), re.findall("`(.*?)`", cells[2]))
            for cells in re.findall(r"^\| (.*?) \| (.*) \| (.*) \|$", text, re.M)
            if cells[0] != "equation"
        ]
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def places_of(mention):
    """What a mention names: "Equations 7 and 8" are ("equation", "7") and ("equation", "8").

    Words without a number name no place.
    """
    found = CANONICAL.fullmatch(mention)
    if not found:
        return []
    kind, one, many = found.groups()
    numbers = re.findall(NUMBER, one or many)
    if many and " to " in many:
        numbers = [str(number) for number in range(int(numbers[0]), int(numbers[1]) + 1)]
    return [(kind.lower(), number) for number in numbers]


def prose_of(path):
    """Docstrings and comments of a file, each on one line."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield " ".join(str(node.value.value).split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


MENTIONS = [
    (str(path.relative_to(PACKAGE)), found.group())
    for path in sorted(PACKAGE.rglob("*.py"))
    for prose in prose_of(path)
    for found in ANY_SPELLING.finditer(prose)
]
NAMES = sorted({name for rows in tables().values() for _, names in rows for name in names})


def test_the_page_has_a_table_for_each_paper():
    assert list(tables()) == list(FOLDERS)
    assert all(names for rows in tables().values() for _, names in rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_tables_exists(name):
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return


def test_the_code_has_one_spelling():
    assert not {(file, found) for file, found in MENTIONS if not CANONICAL.fullmatch(found)}


def test_the_page_has_one_spelling():
    assert not {found for found in ANY_SPELLING.findall(PAGE) if not CANONICAL.fullmatch(found)}


@pytest.mark.parametrize(
    ("file", "mention"),
    sorted({(file, found) for file, found in MENTIONS if CANONICAL.fullmatch(found)}),
)
def test_what_the_code_names_is_in_the_tables(file, mention):
    own = [title for title, folder in FOLDERS.items() if folder == Path(file).parts[0]]
    rows = [row for title in own or FOLDERS for row, _ in tables()[title]]
    assert set(places_of(mention)) <= {place for row in rows for place in places_of(row)}
