"""What a release needs: a dated changelog, licences of locked versions, workflows and forms that name what exists."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock import __version__

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


def test_the_changelog_has_a_day_for_this_version() -> None:
    headings = re.findall(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == __version__


def test_the_typescript_package_and_the_function_have_this_version() -> None:
    folder = ROOT / "clients" / "typescript"
    assert json.loads((folder / "package.json").read_text())["version"] == __version__
    lock = json.loads((folder / "package-lock.json").read_text())
    assert (lock["version"], lock["packages"][""]["version"]) == (__version__, __version__)
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    function = (ROOT / "integrations" / "open-webui" / "penstock_function.py").read_text()
    assert f"\nversion: {__version__}\n" in function


def test_the_page_about_licences_has_the_versions_of_the_lock() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    named = re.findall(r"^\| ([a-z-]+(?:, [a-z-]+)*) \| (\d[\d.]*) \|", page, re.MULTILINE)
    named += re.findall(r"the wheel of (av) (\d+\.\d+\.\d+) for", page)
    told = {name: version for names, version in named for name in names.split(", ") if name in locked}
    assert told.keys() == {"av", "certifi", "psycopg", "psycopg-binary", "psycopg-pool"}
    assert told == {name: locked[name] for name in told}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {name for step in steps(workflow) for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert run
    assert run <= targets


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_write_only_where_they_say_so(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert all("@" in step["uses"] for step in steps(workflow) if "uses" in step)


def test_forms_name_pages_and_commands_that_exist() -> None:
    text = "".join(path.read_text() for path in FORMS) + (ROOT / ".github" / "pull_request_template.md").read_text()
    pages = set(re.findall(r"\b(?:docs/)?[\w-]+\.md\b", text))
    assert "docs/any-model.md" in pages
    assert [page for page in pages if not (ROOT / page).exists()] == []
