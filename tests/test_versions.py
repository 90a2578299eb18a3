"""The oldest versions that are promised are the ones that .ci/run installs."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
# What `dev` adds, contributors have newest.
TESTED = ["cli", "dask", "plot", "html", "tables", "onnx", "docs", "test"]


def promised():
    """Lower bounds of `pyproject.toml`: of the build, the library and the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lines = project["build-system"]["requires"] + project["project"]["dependencies"]
    for requirement in map(Requirement, lines + [one for name in TESTED for one in extras[name]]):
        if requirement.name != "loclin":
            (bound,) = requirement.specifier
            assert bound.operator == ">=", requirement
            yield requirement.name, Version(bound.version)


def installed():
    for line in (ROOT / ".ci" / "oldest.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            yield name, Version(version)


def test_the_oldest_versions_are_those_that_are_promised():
    assert dict(installed()) == dict(promised())
    assert len(dict(installed())) == len([*installed()])
