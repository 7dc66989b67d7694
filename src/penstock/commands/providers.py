"""List providers, and check one with a real call."""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import typer

from penstock.accounts.request_filters import Filters
from penstock.api.endpoints.provider_trials import ENDPOINTS, TrialCall, cheapest_trial, trial_call
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.exchanges import Exchanges
from penstock.commands.gateway_client import GatewayClient, Key, Url, running_gateway, say_that_none_runs
from penstock.commands.output import Json, print_json, report, usd
from penstock.commands.owner import as_caller
from penstock.commands.tables import show_table
from penstock.environment import ENVIRONMENT
from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generations import retrieve
from penstock.models.catalog import Catalog
from penstock.providers import discover
from penstock.recordings import files, folders
from penstock.schema import Caller, Response
from penstock.settings import Settings

app = typer.Typer(help="List providers and what is missing for those that are off, or check one.")

_RECORD_SECONDS = 30
_VIDEO_SECONDS = 900
_COLUMNS = ["provider", "name", "on", "reason", "credential", "models"]


@app.callback(invoke_without_command=True)
def providers(
    context: typer.Context,
    data: Data = None,
    config: Config = None,
    url: Url = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """List the providers of the running gateway, with their health. Without one: as a gateway started here has them."""
    if context.invoked_subcommand is not None:
        return
    gateway = running_gateway(url, key, data, config, is_operator=True)
    if gateway is None:
        say_that_none_runs()
        rows = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT).providers.describe()
    else:
        rows = gateway.get("/v1/providers").body["data"]
    if as_json:
        print_json(rows)
    elif gateway is None:
        show_table("Providers", _COLUMNS, [_cells(row) for row in rows])
    else:
        show_table("Providers", [*_COLUMNS, "health"], [[*_cells(row), _health_text(row["health"])] for row in rows])


def _cells(row: Mapping[str, Any]) -> list[Any]:
    return [row["id"], row["name"], "on" if row["on"] else "off", row["reason"], row["credential"], row["models"]]


def _health_text(health: Sequence[Mapping[str, Any]]) -> str:
    """Return the health of all models of a provider as text."""
    if not health:
        return "not called yet"
    unhealthy = [f"{row['model']} unhealthy ({row['last_problem']})" for row in health if not row["healthy"]]
    successes = sum(row["successes"] for row in health)
    failures = sum(row["failures"] for row in health)
    rejected = sum(row["rejected"] for row in health)
    counts = [f"{successes} succeeded", *([f"{rejected} rejected"] if rejected else []), f"{failures} failed"]
    return ", ".join([*counts, *unhealthy])


# --------------------------------------------------------------------------------------------------------------- checks


@app.command("check")
def check_provider(
    slug: str,
    data: Data = None,
    config: Config = None,
    url: Url = None,
    key: Key = None,
    model: Annotated[str | None, typer.Option(help="Model to call; by default the cheapest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Make the call without asking first.")] = False,
    record: Annotated[Path | None, typer.Option(help="Folder for recordings of the call.")] = None,
    as_json: Json = False,
) -> None:
    """Make the cheapest real call to a provider and print its result and its cost.

    The running gateway makes the call and lists it under its requests. Without one, or with --record, this process
    makes it and nothing is kept.
    """
    if record is None and (gateway := running_gateway(url, key, data, config, is_operator=True)):
        _check_by(gateway, slug, model, yes, as_json)
        return
    settings = load_settings(data=data, config=config)
    catalog = Catalog(discover(), settings, ENVIRONMENT)
    found = {provider["id"]: provider for provider in catalog.providers.describe()}
    if slug not in found:
        raise ValueError(f"no such provider: {slug}; known providers are {', '.join(found)}")
    if not found[slug]["on"]:
        raise ValueError(f"{slug} is off: {found[slug]['reason']}")
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        # The call is made by a gateway of its own, so that it leaves no trace in the operator's database and files.
        separate = msgspec.structs.replace(settings, data=Path(folder), database="", media="", billing="postpaid")
        with redirect_stdout(sys.stderr):  # stdout is for the result, not for what this gateway logs
            result = asyncio.run(_check(separate, slug, model, yes, record))
    text = f"{slug} works: {result['made']} in {result['seconds']:.1f} s, {usd(result['cost_usd'])}"
    report("\n".join(filter(None, [text, result["exchanges"], result["recording"]])), as_json, **result)


def _check_by(gateway: GatewayClient, slug: str, model: str | None, yes: bool, as_json: bool) -> None:
    """Have a running gateway make the call, as the page on providers does."""
    path, body = f"/v1/providers/{quote(slug, safe='')}/check", {"model": model} if model else {}
    trial = gateway.post(path, body, dryRun=True).body
    typer.echo(f"{trial['model']} ({trial['kind']}): at most {usd(trial['estimate'])}", err=True)
    if not yes:
        typer.confirm("Make this call?", abort=True, err=True)
    made = gateway.post(path, body).body
    if made["error"]:
        raise ValueError(f"{slug} does not work: {made['error']['code']}: {made['error']['message']}")
    seconds = made["duration_ms"] / 1000
    cost = "" if made["cost"] is None else f", {usd(made['cost'])}"
    state = "has accepted a video" if made["status"] == "started" else "works"
    report(f"{slug} {state}: {made['model']} in {seconds:.1f} s{cost}, request {made['request_id']}", as_json, **made)


async def _check(settings: Settings, slug: str, model: str | None, yes: bool, record: Path | None) -> dict[str, Any]:
    """Make the call; return what it made and what it cost."""
    async with build_gateway(settings) as gateway, run_background_work(gateway):
        welcome = await ensure_first_key(gateway)
        caller = await gateway.keys.authenticate(f"Bearer {welcome.key}")
        trial = await cheapest_trial(gateway, caller, slug, model, recorded=record is not None)
        typer.echo(f"{trial.model} ({trial.task}): at most {usd(trial.usd)}", err=True)
        if not yes:
            typer.confirm("Make this call?", abort=True, err=True)
        started = gateway.clock.monotonic()
        exchanges = Exchanges()
        gateway.upstream.on_exchange = exchanges.keep
        try:
            response = await _make_call(gateway, caller, trial, {"x-service-replay": "record"} if record else {})
        except Problem as problem:
            raise ValueError(f"{slug} does not work: {problem.code}: {problem.message}") from None
        seconds = gateway.clock.monotonic() - started
        recording = exchanges_file = None
        if record:
            row = await gateway.recordings.get(caller.org_id, response.headers["x-service-replay-recording"])
            exported = await files.export_recording(gateway.recordings, row)
            with as_caller():
                recording = str(folders.save_recording(record, *exported))
                exchanges_file = _save_exchanges(record, slug, trial, gateway, exchanges)
        return {
            "provider": slug,
            "model": trial.model,
            "made": _result_text(trial, response),
            "seconds": seconds,
            "cost_usd": await _cost(gateway, caller),
            "exchanges": exchanges_file,
            "recording": recording,
        }


def _save_exchanges(folder: Path, slug: str, trial: TrialCall, gateway: Gateway, exchanges: Exchanges) -> str | None:
    """Write what the provider was sent and replied, as a recording for the project's own tests.

    Returns the path, or None if nothing was sent: the provider answers inside this process.
    """
    if not exchanges:
        return None
    known = {provider.slug: provider for provider in (*gateway.catalog.providers.known.values(), *discover())}
    name = re.sub(r"[^a-z0-9.]+", "_", trial.model.removeprefix(f"{slug}/").lower())
    path = folder / f"{slug}_{name}_exchanges.json"
    document = exchanges.recording(trial.body, gateway.upstream, known[slug].base_url, _own_values(gateway, slug))
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return str(path)


def _own_values(gateway: Gateway, slug: str) -> list[str]:
    """The values that the operator has every request sent with: what they mean, and whether they are secret, is not
    known.
    """
    table = gateway.settings.providers.get(slug) or {}
    return [str(value) for name in ("headers", "query") for value in (table.get(name) or {}).values()]


async def _make_call(gateway: Gateway, caller: Caller, trial: TrialCall, headers: Mapping[str, str]) -> Response:
    path, endpoint = ENDPOINTS[trial.task]
    response = await endpoint(gateway, trial_call(gateway, caller, path, trial.body, headers=headers))
    if trial.task != "video":
        return response
    asked = trial_call(gateway, caller, path, None, path={"id": response.json["id"]})
    async with asyncio.timeout(_VIDEO_SECONDS):
        while (response := await retrieve.video(gateway, asked)).json["status"] not in ("completed", "failed"):
            await gateway.clock.sleep(0.5)
    if response.json["status"] == "failed":
        raise retrieve.stored_problem(response.json["error"]["code"], response.json["error"]["message"])
    return response


def _result_text(trial: TrialCall, response: Response) -> str:
    if trial.task == "chat":
        return f"{len(response.body or b'')} bytes of chat"
    if trial.task in ("transcription", "translation"):
        return f"{len(response.body or b'')} bytes of text"
    if trial.task == "speech":
        return f"{len(response.body or b'')} bytes of sound"
    if trial.task == "video":
        return f"a video of {response.json['seconds']} s, {response.json['size']}"
    return f"an image of {response.json['size']}"


async def _cost(gateway: Gateway, caller: Caller) -> Decimal:
    """Return the cost in the record of the call, which is the only record; that of a chat is written a moment later."""
    async with asyncio.timeout(_RECORD_SECONDS):
        while True:
            page = await gateway.requests.list_records(caller.org_id, Filters(status="completed"))
            if page.data:
                return Decimal(str(page.data[0]["cost"]))
            await gateway.clock.sleep(0.01)
