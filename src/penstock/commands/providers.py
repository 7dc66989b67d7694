"""List providers, and check one with a real call."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import typer

from penstock.accounts.requests import Filters
from penstock.api.trials import ENDPOINTS, TrialCall, cheapest_trial, trial_call
from penstock.app import build_gateway, ensure_first_key, run_background_work
from penstock.commands.terminal import Config, Data, load_settings, show
from penstock.environment import ENVIRONMENT
from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generations import retrieve
from penstock.providers import discover
from penstock.recordings import files
from penstock.schema import Caller, Response
from penstock.settings import Settings
from penstock.upstream.catalog import Catalog

app = typer.Typer(help="Providers and their credentials.")

_REMOTE_SECONDS = 30
_VIDEO_SECONDS = 900
_COLUMNS = ["provider", "name", "on", "reason", "credential", "models"]


@app.callback(invoke_without_command=True)
def providers(
    context: typer.Context,
    data: Data = None,
    config: Config = None,
    url: Annotated[
        str | None, typer.Option(help="URL of a running gateway; its list is shown, with the health of the models.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="PENSTOCK_KEY", help="Key of that gateway, with the operator scope.")
    ] = None,
) -> None:
    """List every provider with its state, the variable of its credential and its number of models."""
    if context.invoked_subcommand is not None:
        return
    if url is None:
        rows = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT).providers()
        show("Providers", _COLUMNS, [_cells(row) for row in rows])
        return
    if not key:
        raise ValueError("--url needs --key or PENSTOCK_KEY: a key with the operator scope")
    rows = _fetch_providers(url, key)
    show("Providers", [*_COLUMNS, "health"], [[*_cells(row), _health_text(row["health"])] for row in rows])


def _cells(row: Mapping[str, Any]) -> list[Any]:
    return [row["id"], row["name"], "on" if row["on"] else "off", row["reason"], row["credential"], row["models"]]


def _fetch_providers(url: str, key: str) -> list[dict[str, Any]]:
    if not url.startswith(("http://", "https://")):
        raise ValueError("--url must begin with http:// or https://")
    request = Request(f"{url.rstrip('/')}/v1/providers", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    try:
        with urlopen(request, timeout=_REMOTE_SECONDS) as response:  # noqa: S310
            found: list[dict[str, Any]] = json.load(response)["data"]
            return found
    except HTTPError as problem:
        with problem:
            raise ValueError(
                f"{url} returned status {problem.code}: {problem.read(500).decode(errors='replace')}"
            ) from None


def _health_text(health: Sequence[Mapping[str, Any]]) -> str:
    """Return the health of all models of a provider as text."""
    if not health:
        return "not called yet"
    unhealthy = [f"{row['model']} unhealthy ({row['last_problem']})" for row in health if not row["healthy"]]
    successes = sum(row["successes"] for row in health)
    failures = sum(row["failures"] for row in health)
    return ", ".join([f"{successes} successes", f"{failures} failures", *unhealthy])


# --------------------------------------------------------------------------------------------------------------- checks


@app.command("check")
def check_provider(
    slug: str,
    data: Data = None,
    config: Config = None,
    model: Annotated[str | None, typer.Option(help="Model to call; by default the cheapest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Make the call without asking first.")] = False,
    record: Annotated[Path | None, typer.Option(help="Folder to write a recording of the call to.")] = None,
) -> None:
    """Make the cheapest real call to a provider and print its result and its cost."""
    settings = load_settings(data=data, config=config)
    catalog = Catalog(discover(), settings, ENVIRONMENT)
    found = {provider["id"]: provider for provider in catalog.providers()}
    if slug not in found:
        raise ValueError(f"no such provider: {slug}; known providers are {', '.join(found)}")
    if not found[slug]["on"]:
        raise ValueError(f"{slug} is off: {found[slug]['reason']}")
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        # The call is made by a gateway of its own, so that it leaves no trace in the operator's database and files.
        separate = msgspec.structs.replace(settings, data=Path(folder), database="", media="", billing="postpaid")
        asyncio.run(_check(separate, slug, model, yes, record))


async def _check(settings: Settings, slug: str, model: str | None, yes: bool, record: Path | None) -> None:
    async with build_gateway(settings) as gateway, run_background_work(gateway):
        welcome = await ensure_first_key(gateway)
        caller = await gateway.keys.authenticate(f"Bearer {welcome.key}")
        trial = await cheapest_trial(gateway, caller, slug, model, recorded=record is not None)
        typer.echo(f"{trial.model} ({trial.task}): at most {trial.usd:f} USD")
        if not yes:
            typer.confirm("Make this call?", abort=True)
        started = gateway.clock.monotonic()
        try:
            response = await _make_call(gateway, caller, trial, {"x-service-replay": "record"} if record else {})
        except Problem as problem:
            raise ValueError(f"{slug} does not work: {problem.code}: {problem.message}") from None
        seconds = gateway.clock.monotonic() - started
        typer.echo(
            f"{slug} works: {_result_text(trial, response)} in {seconds:.1f} s, {await _cost(gateway, caller):f} USD"
        )
        if record:
            name = response.headers["x-service-replay-recording"]
            row = await gateway.recordings.get(caller.org_id, name)
            typer.echo(
                files.save_recording(record, *await files.export_recording(gateway.recordings, row, inline=False))
            )


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
    if trial.task == "video":
        return f"a video of {response.json['seconds']} s, {response.json['size']}"
    return f"an image of {response.json['size']}"


async def _cost(gateway: Gateway, caller: Caller) -> Decimal:
    """Return the cost in the record of the call, which is the only record; that of a chat is written a moment later."""
    async with asyncio.timeout(_REMOTE_SECONDS):
        while True:
            page = await gateway.requests.list_records(caller.org_id, Filters(status="completed"))
            if page.data:
                return Decimal(str(page.data[0]["cost"]))
            await gateway.clock.sleep(0.01)
