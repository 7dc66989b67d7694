"""What is said when an extra is missing."""

import re
import tomllib
from pathlib import Path

import pytest

from penstock import package_extras

ROOT = Path(__file__).parents[2]


def test_a_missing_library_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    package_extras.check_extra("postgres", "Postgres")
    monkeypatch.setattr(package_extras, "find_spec", lambda name: None if name == "psycopg_pool" else object())
    with pytest.raises(
        package_extras.ExtraMissing, match=r"^Postgres needs an extra: pip install '\.\[postgres\]' in a"
    ):
        package_extras.check_extra("postgres", "Postgres")
    package_extras.check_extra("s3", "an object store")


def test_every_extra_that_is_checked_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {extra: set(libraries) for extra, libraries in package_extras.LIBRARIES.items()}
    for extra, libraries in named.items():
        wanted = {re.split(r"[^\w.-]", requirement)[0] for requirement in project["optional-dependencies"][extra]}
        named_alike = {"c2pa": "c2pa-python", "jwt": "pyjwt"}
        assert {named_alike.get(library, library.partition("_")[0]) for library in libraries} == wanted
