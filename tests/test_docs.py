"""Documentation in step with the code: generated pages are current, links lead somewhere, dependencies have reasons."""

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs  # comes with schemathesis
import pytest
from prometheus_client.parser import text_string_to_metric_families

from docs import catalogue, generate, toml_schema
from penstock.accounts.key_records import SCOPES
from penstock.api.openapi.operations import OPERATIONS
from penstock.api.routes import ROUTES
from penstock.providers import discover
from penstock.providers.spec import FailureKind, Price
from penstock.telemetry import metrics_text
from penstock.telemetry.metrics import CurrentValues, Metrics, StoredValues
from penstock.values import Nanos
from tests import snippets, source_tree

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DEPENDENCIES = ROOT / "docs" / "decisions" / "dependencies.md"


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("path", generate.PAGES, ids=lambda path: path.name)
def test_generated_page_is_current(path: Path) -> None:
    assert path.exists(), "run `make docs`"
    assert path.read_text() == generate.PAGES[path](), "run `make docs`"


# -------------------------------------------------------------------------------------------------------------- quotes

GUIDE = ROOT / "docs" / "add-a-provider.md"


def quoted(language: str) -> list[str]:
    """The blocks of the guide; those of its last section are run by tests/test_package.py instead."""
    guide, _ = GUIDE.read_text().split("## In a package of your own\n")
    return re.findall(rf"^```{language}\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)


def test_the_guide_quotes_a_provider_as_it_is() -> None:
    source = (ROOT / "src" / "penstock" / "providers" / "luma.py").read_text()
    assert len(quoted("python")) > 5
    assert [block for block in quoted("python") if block not in source] == []


def test_the_guide_quotes_a_recording_as_it_is() -> None:
    assert quoted("json") == [(ROOT / "tests" / "providers" / "luma" / "busy.json").read_text()]


def test_there_are_pages_of_providers_that_exist_only() -> None:
    assert set(generate.PROVIDERS.glob("*")) <= set(generate.PAGES), "run `make docs`"


def test_the_pages_about_providers_leave_none_out() -> None:
    index = generate.PAGES[ROOT / "docs" / "providers.md"]()
    for provider in discover():
        assert f"[{provider.name}](providers/{provider.slug}.md)" in index
        page = generate.PAGES[generate.PROVIDERS / f"{provider.slug}.md"]()
        assert page.startswith(f"# {provider.name}\n")
        for model in provider.models:
            assert f"| `{model.id}` |" in page
            assert all(price.source and price.source.name in page for price in model.prices)
            assert all(f"`{to}`" in page for row in model.op.params for to in row.to)


def test_a_price_for_large_calls_says_what_is_counted() -> None:
    assert catalogue.money(Price(unit="image", usd="0.09", above=5)) == "0.09 an image (more than 5 pixels)"
    chat = catalogue.money(Price(unit="token", usd="0.000002", above=5))
    assert chat == "2 a million tokens (more than 5 input tokens)"


def test_a_price_for_a_larger_megapixel_is_shown_as_the_provider_states_it() -> None:
    price = Price(unit="megapixel", usd="0.01430511474609375", input_usd="0.01430511474609375", each_usd="0.015")
    assert catalogue.money(price) == "0.015 for 1024x1024 pixels, 0.015 input, 0.015 for each output"
    assert catalogue.money(Price(unit="megapixel", usd="0.025")) == "0.025 a megapixel"


def provider_pages() -> str:
    return "".join(path.read_text() for path in generate.PROVIDERS.glob("*.md"))


def test_the_pages_about_providers_have_no_long_amounts() -> None:
    assert len(provider_pages()) > 100_000
    assert re.findall(r"\d*\.\d{9,}", provider_pages()) == []


def test_the_pages_about_providers_write_large_limits_in_full() -> None:
    """Such as 2147483647, which is not 2.14748e+09."""
    assert re.findall(r".*\de\+\d.*", provider_pages()) == []


def test_operators_are_told_of_every_metric_and_its_labels() -> None:
    """All names that the exposition can have, out of one with something in each."""
    metrics = Metrics()
    metrics.count_response("GET", "/x", 200, 0.1)
    metrics.count_generation("lab", "image", "completed", Nanos(1))
    metrics.count_attempt("lab", "x", "chat", "success", 1.0, {"input": 1})
    metrics.count_first_byte("lab", "x", 1.0)
    metrics.count_output("image", "signed")
    metrics.count_verdict("house", "pass")
    health = [{"provider": "lab", "model": "m", "successes": 1, "failures": 0, "healthy": True}]
    figures = CurrentValues(
        jobs_running=0,
        pool_workers=0,
        pool_places=0,
        stored=StoredValues(),
        writes=0,
        write_seconds=0,
        health=health,
        certificate_seconds=1,
    )
    families = text_string_to_metric_families(metrics_text.render(metrics.total(figures)).decode())
    served = {
        family.name + ("_total" if family.type == "counter" else ""): {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
        for family in families
    }
    page = (ROOT / "docs" / "telemetry.md").read_text()
    rows = re.findall(r"^\| (`penstock_[^|]*)\|([^|]*)\|", page, re.MULTILINE)
    told = {
        name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)
    }
    assert told == served


def test_operators_are_told_of_every_kind_of_failure() -> None:
    page = (ROOT / "docs" / "telemetry.md").read_text()
    assert [kind for kind in get_args(FailureKind) if f"`{kind}`" not in page] == []


def test_operators_are_told_what_each_scope_allows() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    told = {
        scope: set(re.findall(r"`(/[^`]+)`", allows))
        for scope, allows in re.findall(r"^\| `(\w+)` \|([^|]*)\|", page, re.M)
    }
    for scope in SCOPES:
        assert told[scope] == {"/".join(route.path.split("/")[:3]) for route in ROUTES if route.access == scope}


# ------------------------------------------------------------------------------------------------------- penstock.toml


def toml_examples() -> list[str]:
    """Every example of penstock.toml in the documentation. The guide to providers has a pyproject.toml instead."""
    texts = [path.read_text() for path in documents() if path != GUIDE]
    return [block for text in texts for block in re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def test_examples_of_penstock_toml_fit_the_schema() -> None:
    validator = jsonschema_rs.validator_for(json.loads(toml_schema.schema()))
    assert len(toml_examples()) > 2
    for example in toml_examples():
        assert [error.message for error in validator.iter_errors(tomllib.loads(example))] == []


def test_the_schema_finds_mistakes() -> None:
    validator = jsonschema_rs.validator_for(json.loads(toml_schema.schema()))
    lab = {"speaks": "openai", "base_url": "https://lab.example/v1"}
    price = {"unit": "image", "usd": "0.04"}
    assert validator.is_valid({"providers": {"lab": {**lab, "models": [{"id": "m", "task": "image", "price": price}]}}})
    mistakes: list[dict[str, Any]] = [
        {"port": "http"},
        {"prot": 1},
        {"providers": {"lab": {**lab, "speaks": "latin"}}},
        {"providers": {"lab": {**lab, "base_url": "lab.example"}}},
        {"providers": {"fal": lab}},
        {"providers": {"lab": {**lab, "models": [{"id": "m", "task": "image", "price": {**price, "usd": 0.04}}]}}},
        {"models": {"m": {"weight": 0}}},
    ]
    assert [mistake for mistake in mistakes if validator.is_valid(mistake)] == []


def test_journeys_name_modules_and_functions_that_exist() -> None:
    text = (ROOT / "docs" / "journeys.txt").read_text()
    named = re.findall(
        r"^ +((?:api|generations|chat|accounts|jobs|media|webhooks|upstream|net)\.[\w.]+)", text, re.MULTILINE
    )
    assert len(named) > 20
    missing = []
    for name in named:
        package, module, *attributes = name.split(".")
        found: object = importlib.import_module(f"penstock.{package}.{module}")
        for attribute in attributes:
            found = getattr(found, attribute, None)
        if found is None:
            missing.append(name)
    assert missing == []


# --------------------------------------------------------------------------------------------------------------- links


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def prose(path: Path) -> str:
    """The text without its code, where brackets mean something else."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> Iterator[str]:
    for link in LINK.findall(prose(document)):
        address, _, anchor = link.partition("#")
        target = (document.parent / address).resolve() if address else document
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert list(broken(document)) == []


def test_every_operation_is_described() -> None:
    """In api/openapi/operations.py; `python -m docs.examples` makes its example from a call in docs/examples.py."""
    served = {route.endpoint.__name__ for route in ROUTES}
    assert served == OPERATIONS.keys(), (
        "each endpoint of api/routes.py has its entry in api/openapi/operations.py, and no other"
    )


def test_every_block_of_code_is_run_or_says_why_not() -> None:
    assert [problem for page in snippets.pages() for problem in snippets.unexplained(page)] == []


def test_every_page_is_listed() -> None:
    """By docs/README.md, which is also the navigation at /docs, or by the page of its folder."""
    indexes = [ROOT / "docs" / "README.md", ROOT / "docs" / "providers.md", *(ROOT / "docs").glob("*/README.md")]
    listed = {(index.parent / link).resolve() for index in indexes for link in LINK.findall(index.read_text())}
    pages = set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "README.md"}
    assert sorted(str(path.relative_to(ROOT)) for path in pages - listed) == []


# -------------------------------------------------------------------------------------------------------- installing

INSTALLING = re.compile(r"\b(?:pip3?|pipx|uv|uv tool) (?:install|add)\s+((?:[^\s`]+[ \t]*)+)")
INSTALLING_TO_RUN = re.compile(r"\buvx --from\s+([^\s`]+)")


def requirements_to_install(text: str) -> list[str]:
    """What the commands in a text install, with the options and paths among it."""
    commands = INSTALLING.findall(text) + INSTALLING_TO_RUN.findall(text)
    return [word.strip("'\"") for command in commands for word in command.split()]


def texts_with_commands() -> list[Path]:
    folders = [(ROOT / "src", ("py", "js")), (ROOT / "deploy", ("service", "yaml", "md"))]
    files = [path for folder, endings in folders for ending in endings for path in folder.rglob(f"*.{ending}")]
    return [*documents(), *files]


def test_commands_install_penstock_from_a_clone_and_with_extras_that_exist() -> None:
    """It is on no index, so a command that names it as a package installs nothing, or something else."""
    known = project()["project"]["optional-dependencies"].keys()
    named: set[str] = set()
    for path in texts_with_commands():
        for word in requirements_to_install(path.read_text()):
            assert not re.match(r"penstock(?:$|[\[=<>~!@])", word), f"{path.relative_to(ROOT)} installs {word}"
            if found := re.fullmatch(r"\.\[([\w,]+)\]", word):
                named.update(found[1].split(","))
    assert named
    assert named <= known


# -------------------------------------------------------------------------------------------------------- dependencies


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def reasons(heading: str) -> dict[str, str]:
    """The rows of the table under a heading of dependencies.md."""
    section = DEPENDENCIES.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w.-]+)` \| (.+) \|$", section, re.MULTILINE))


def test_each_runtime_dependency_has_a_reason() -> None:
    assert reasons("At run time").keys() == names(project()["project"]["dependencies"])


def test_each_extra_has_a_reason() -> None:
    section = DEPENDENCIES.read_text().partition("\n## Extras\n")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)` \| `([\w.-]+)` \| .+ \|$", section, re.MULTILINE))
    extras = project()["project"]["optional-dependencies"]
    assert rows == {(extra, name) for extra, required in extras.items() for name in names(required)}


# Distributions whose import name is not their own name with underscores.
IMPORT_NAMES = {
    "c2pa-python": "c2pa",
    "pillow": "PIL",
    "pyjwt": "jwt",
    "markdown-it-py": "markdown_it",
    "opentelemetry-sdk": "opentelemetry",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
}


def imported_libraries() -> set[str]:
    return {words[0] for module in source_tree.modules() for words in source_tree.imported(module)}


def test_each_runtime_dependency_is_imported() -> None:
    optional = [each for required in project()["project"]["optional-dependencies"].values() for each in required]
    required = names(project()["project"]["dependencies"] + optional)
    libraries = imported_libraries()
    assert [name for name in sorted(required) if IMPORT_NAMES.get(name, name.replace("-", "_")) not in libraries] == []


def test_each_other_dependency_has_a_reason() -> None:
    groups = project()["dependency-groups"]
    assert reasons("For installing and testing").keys() == names(groups["build"] + groups["dev"])
