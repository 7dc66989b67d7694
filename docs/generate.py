"""Write the pages of docs/ that say what the code says; `make docs` runs this, and tests/test_docs.py compares."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from docs import catalogue, reference, toml_schema
from docs.reference import table
from penstock.api.openai_endpoints import ENDPOINTS
from penstock.providers import discover
from penstock.settings import description
from tests.cookbook.pages import FEATURES
from tests.cookbook.pages import FOLDER as COOKBOOK
from tests.providers import descriptions
from tests.source_tree import BUILT_IN, layers

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "penstock"
NOTE = "<!-- Written by `make docs`; change the code or docs/generate.py instead. -->"


# ---------------------------------------------------------------------------------------------------------------- tour


# What people look for first, and where it is.
PLACES = {
    "the list of all endpoints": ("api/routes.py", "api/compat_routes.py", "api/native_routes.py"),
    "the check of an API key": ("accounts/keys.py",),
    "a limit of requests or of money": ("accounts/limits.py", "api/rates.py"),
    "what a request costs": ("accounts/prices.py", "chat/pricing.py", "upstream/token_prices.py"),
    "how money is held and captured": ("accounts/transfers.py",),
    "which provider is tried first": ("models/routing.py", "models/health.py"),
    "when the next provider is tried": ("upstream/failures.py", "generation_jobs/failover.py", "chat/failover.py"),
    "what a provider is sent": ("upstream/translate.py", "providers/spec.py"),
    "the database schema": ("store/migrations",),
    "a query": ("store/queries",),
    "what happens if fewer than `n` images come": ("generation_jobs/failover.py", "generation_jobs/parts.py"),
    "how a job goes on after a crash": ("jobs/leases.py", "generation_jobs/run.py", "generation_jobs/attempt.py"),
    "the costs over time that the dashboard draws": ("accounts/usage.py", "web/static/pages/overview.js"),
    "where the HTTP server begins and ends": ("http_server/server.py", "http_server/connection.py"),
    "where files are stored": ("media/storage.py", "media/bucket.py"),
    "how outputs get into an organization's bucket": ("generation_jobs/delivery.py", "destinations/bucket.py"),
    "how an image is converted": ("imaging/convert.py",),
    "how speech is converted while it arrives": ("speech/conversion.py", "sound/convert.py"),
    "where Content Credentials are written": ("provenance/sealer.py", "provenance/seal.py"),
    "when a webhook is sent again": ("webhooks/deliveries.py",),
    "the role of a person who signs in": ("people/sign_in.py", "people/users.py"),
    "how a row of a batch becomes a call": ("batches/row_runs.py",),
    "when guards are asked": ("chat/guarded.py", "guards/guards.py"),
    "the metrics": ("telemetry/metrics.py",),
    "the settings": ("settings/__init__.py",),
}


def tour() -> str:
    diagram = "\n".join("    " + "  ".join(line) for line in layers() if line != ["__init__"])
    packages = [name for line in layers() for name in line if path_of(name).is_dir()]
    modules = [name for line in layers() for name in line if path_of(name).is_file() and name != "__init__"]
    beside = "\n".join(entry for name in modules for entry in told(path_of(name)))
    places = "\n".join(
        f"- {what}: {', '.join(link(SOURCE / place) for place in found)}" for what, found in PLACES.items()
    )
    sections = "\n\n".join(package_section(SOURCE / name) for name in packages)
    return f"""# A tour of the source

{NOTE}

The source is packages, each about one subject, and some modules beside them. Each package says below what it
does and where to start reading. Imports point one way: in this table a package imports only from lower lines, never
from its own line or from above. It is kept in [layers.txt](layers.txt) and checked by `tests/test_layout.py`;
[layout](decisions/layout.md) has the reasons.

{diagram}

## Four journeys

Start reading with [generations/endpoints.py](../src/penstock/generations/endpoints.py) or
[chat/endpoint.py](../src/penstock/chat/endpoint.py).

```text
{(ROOT / "docs" / "journeys.txt").read_text().rstrip()}
```

## Where is …?

{places}

## Modules beside the packages

{beside}

{sections}

{package_section(BUILT_IN)}
"""


def package_section(folder: Path) -> str:
    """What a package does, as its docstring says, and one line per module."""
    about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    _, *modules = told(folder)
    return "\n".join([f"## {folder.name}", "", about, "", *(line.removeprefix("  ") for line in modules)]).rstrip()


def path_of(name: str) -> Path:
    """The module or the folder that the table of layers calls by this name."""
    return SOURCE / name if (SOURCE / name).is_dir() else SOURCE / f"{name}.py"


def told(path: Path) -> Iterator[str]:
    """One line for a module; for a folder one more, indented, for each module in it."""
    if path.is_file():
        yield f"- {link(path)}: {sentence(path)}"
    elif (path / "__init__.py").exists():
        yield f"- {link(path)}: {sentence(path / '__init__.py')}"
        yield from (f"  {line}" for each in sorted(path.iterdir()) if listed(each) for line in told(each))


def listed(path: Path) -> bool:
    return path.is_dir() or (path.suffix == ".py" and path.stem != "__init__")


def link(path: Path) -> str:
    shown = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else BUILT_IN.parent).as_posix()
    shown += "/" if path.is_dir() else ""
    return f"[{shown}](../{path.relative_to(ROOT).as_posix()})"


def sentence(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


# ------------------------------------------------------------------------------------------------------------ settings


# The sections of the page, each with its first setting.
SETTING_GROUPS = {
    "data": "Where it runs, and who reaches it",
    "database": "Database, files and secret",
    "starting_credit_usd": "Money",
    "media_retention": "What callers get, and how long it is kept",
    "image_wait_seconds": "How long things may take, and how much at a time",
    "storage_bytes_per_org": "Sizes",
    "body_seconds": "The process",
    "provenance": "Content Credentials",
    "router": "Providers and the network",
    "alert_url": "Alerts and webhooks",
    "log_level": "Logs, metrics and traces",
    "providers": "Tables, in penstock.toml only",
}


def settings_page() -> str:
    groups: dict[str, list[tuple[str, ...]]] = {}
    rows: list[tuple[str, ...]] = []
    for name, _, default, about in description.rows():
        if name in SETTING_GROUPS:
            rows = groups.setdefault(SETTING_GROUPS[name], [])
        shown = ", ".join(f"`{item}`" for item in default.split(", ")) if default else ""
        rows.append((f"`{name}`", shown, about))
    assert list(groups) == list(SETTING_GROUPS.values()), "a section begins with a setting that does not exist"
    sections = "\n\n".join(
        f"## {heading}\n\n{table(('setting', 'default', 'meaning'), rows)}" for heading, rows in groups.items()
    )
    return f"""# Settings

{NOTE}

Every setting has the same name everywhere: `drain_seconds` in `penstock.toml` is `PENSTOCK_DRAIN_SECONDS` in the
environment. What the command line says comes first, then the environment, then `penstock.toml` in the data folder, then
the default below. `penstock settings` shows what is in force and where it comes from.

The value of a variable may be in a file instead: `PENSTOCK_DATABASE_FILE` names a file with the URL of the database.
The same holds for credentials of providers, which are not settings: they are read from the variables that the
providers' own libraries use, such as `FAL_KEY` or `FAL_KEY_FILE`. [Configuration](configuration.md) explains how the
sources combine.

{sections}
"""


# -------------------------------------------------------------------------------------------------------------- OpenAI


def openai_page() -> str:
    """What openai.txt says about differences, and the table of endpoints."""
    served = {"yes": "**yes**", "partly": "partly", "no": "no"}
    rows = (
        (f"`{endpoint.method} {endpoint.path}`".replace("` ", "`"), served[endpoint.served], endpoint.remark)
        for endpoint in ENDPOINTS
    )
    return f"""# OpenAI's clients and API

{NOTE}

{(ROOT / "docs" / "openai.txt").read_text().rstrip()}

## Every endpoint

Paths are below `/compat/v1`. A path that is not served is answered with a 404 that says so.

{table(("OpenAI's endpoint", "served", "remark"), rows)}
"""


# ------------------------------------------------------------------------------------------------------------ cookbook


def cookbook_index() -> str:
    """Which client does what, from the results of the last `make test-cookbook`."""
    results = json.loads((COOKBOOK / "results.json").read_text())
    rows = (
        (
            f"[{heading(COOKBOOK / f'{name}.md')}]({name}.md)",
            *("yes" if feature in result["shows"] else "" for feature in FEATURES),
        )
        for name, result in results.items()
    )
    versions = {
        f"`{package}` {version}" for result in results.values() for package, version in result["versions"].items()
    }
    return f"""# Cookbook

{NOTE}

One short page for each client, with programs that work as pasted. Start a gateway with `make serve` or `penstock
serve`, and put the key that it prints into the variable `PENSTOCK_KEY`. The programs use models that are built in, so
nothing is spent.

`make test-cookbook` installs each client in its newest version, runs every program of every page against a gateway,
compares what it prints with the page, and writes this table. Open WebUI has several gigabytes and is run only if it is
named: `make test-cookbook ARGS=open-webui`.

{table(("client", *FEATURES), rows)}

An empty cell means that the client has no such call, or that its page does not show it. What the gateway itself serves
of OpenAI's API, and what it does not, is on [another page](../openai.md).

The table was made with {", ".join(sorted(versions))}.
"""


# ----------------------------------------------------------------------------------------------------------- decisions


_DECISION = "**Decision.**"


def decisions_index() -> str:
    records = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")
    rows = ((f"[{heading(path)}]({path.name})", lead(path)) for path in records)
    return f"""# Decisions

{NOTE}

One page for each choice that a reader might want to undo: what was chosen, what it costs, and when to think again.

{table(("decision", "in short"), rows)}
"""


def heading(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ")


def lead(path: Path) -> str:
    """The first sentence of the decision or, on a page without a part of that name, the first after the heading."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in path.read_text().split("\n\n")]
    decision = next((part for part in paragraphs if part.startswith(_DECISION)), paragraphs[1])
    return re.split(r"(?<=[.!?]) ", decision.removeprefix(_DECISION).strip())[0]


PROVIDERS = ROOT / "docs" / "providers"

# Each generated page, and what makes its text.
PAGES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "tour.md": tour,
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "docs" / "penstock.schema.json": toml_schema.schema,
    ROOT / "docs" / "providers.md": partial(catalogue.index_page, NOTE),
    **{
        PROVIDERS / f"{provider.slug}.md": partial(catalogue.provider_page, NOTE, provider)
        for provider in sorted(discover(), key=lambda provider: provider.slug)
    },
    ROOT / "docs" / "errors.md": partial(reference.errors_page, NOTE),
    ROOT / "docs" / "endpoints.md": partial(reference.endpoints_page, NOTE),
    ROOT / "docs" / "openai.md": openai_page,
    ROOT / "docs" / "cookbook" / "README.md": cookbook_index,
    ROOT / "docs" / "decisions" / "README.md": decisions_index,
}


def main() -> None:
    record = json.dumps(descriptions.compared(discover()), indent=1)
    descriptions.RECORD.write_text(f"{record}\n")
    # In a process of its own, before this one reads the examples for the page of endpoints.
    subprocess.run([sys.executable, "-m", "docs.examples"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for path in set(PROVIDERS.glob("*.md")) - set(PAGES):
        path.unlink()  # of a provider that is gone
    for path, text in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text())
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
