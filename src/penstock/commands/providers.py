"""List providers, and try one with its real credential."""

import asyncio
import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import typer

from penstock.accounts.requests import Filters
from penstock.app import first_start, opened_gateway, working
from penstock.chat import endpoint as chat
from penstock.commands.terminal import Config, Data, chosen, show
from penstock.errors import Problem
from penstock.gateway import Gateway
from penstock.generations import endpoints, retrieve
from penstock.imaging import convert
from penstock.providers import discover
from penstock.providers.spec import Model
from penstock.recordings import files
from penstock.schema import Call, Caller, Response
from penstock.settings import Settings
from penstock.upstream.catalog import ANY, Catalog
from penstock.values import new_id

app = typer.Typer(help="Providers: which are on, how they are, whether a credential works.")

_REMOTE_SECONDS = 30
_FILM_SECONDS = 900
_WORDS = "a grey pebble on a white table"
_COLUMNS = ["provider", "name", "on", "why not", "credential", "models"]
_ENDPOINTS = {
    "image": ("/compat/v1/images/generations", endpoints.make_images),
    "edit": ("/compat/v1/images/edits", endpoints.edit_images),
    "upscale": ("/compat/v1/images/edits", endpoints.edit_images),
    "video": ("/compat/v1/videos", endpoints.start_video),
    "chat": ("/compat/v1/chat/completions", chat.complete),
}


@app.callback(invoke_without_command=True)
def providers(
    context: typer.Context,
    data: Data = None,
    config: Config = None,
    url: Annotated[str | None, typer.Option(help="A running gateway, whose view is shown.")] = None,
    key: Annotated[str | None, typer.Option(envvar="PENSTOCK_KEY", help="Its key, with the admin scope.")] = None,
) -> None:
    """List every provider: on or off, why, its credential's variable and how many models it has."""
    if context.invoked_subcommand is not None:
        return
    if url is None:
        rows = Catalog(discover(), chosen(data=data, config=config), os.environ).providers()
        show("Providers", _COLUMNS, [_cells(one) for one in rows])
        return
    if not key:
        raise ValueError("--url needs --key or PENSTOCK_KEY: a key with the admin scope")
    rows = _remote(url, key)
    show("Providers", [*_COLUMNS, "health"], [[*_cells(one), _pulse(one["health"])] for one in rows])


def _cells(row: Mapping[str, Any]) -> list[Any]:
    return [row["id"], row["name"], "on" if row["on"] else "off", row["reason"], row["credential"], row["models"]]


def _remote(url: str, key: str) -> list[dict[str, Any]]:
    if not url.startswith(("http://", "https://")):
        raise ValueError("--url must begin with http:// or https://")
    asked = Request(f"{url.rstrip('/')}/v1/providers", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    try:
        with urlopen(asked, timeout=_REMOTE_SECONDS) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]
            return found
    except HTTPError as problem:
        with problem:
            raise ValueError(f"{url} answered {problem.code}: {problem.read(500).decode(errors='replace')}") from None


def _pulse(health: Sequence[Mapping[str, Any]]) -> str:
    """All its models in a few words."""
    if not health:
        return "not called yet"
    sick = [f"{one['model']} unwell ({one['last_problem']})" for one in health if not one["well"]]
    good, bad = (sum(one[name] for one in health) for name in ("good", "bad"))
    return ", ".join([f"{good} good", f"{bad} bad", *sick])


# --------------------------------------------------------------------------------------------------------------- trials


@dataclass(frozen=True, slots=True)
class Trial:
    """One call that a provider could be tried with, and what it would cost."""

    task: str
    model: str
    body: Mapping[str, Any]
    usd: Decimal


@app.command("check")
def check_provider(
    slug: str,
    data: Data = None,
    config: Config = None,
    model: Annotated[str | None, typer.Option(help="Which model; the cheapest unless said.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before spending.")] = False,
    record: Annotated[Path | None, typer.Option(help="Folder to keep a recording of the call in.")] = None,
) -> None:
    """Make the cheapest real call to a provider and say how it went and what it cost."""
    these = chosen(data=data, config=config)
    catalog = Catalog(discover(), these, os.environ)
    found = {one["id"]: one for one in catalog.providers()}
    if slug not in found:
        raise ValueError(f"no such provider: {slug}; known are {', '.join(found)}")
    if not found[slug]["on"]:
        raise ValueError(f"{slug} is off: {found[slug]['reason']}")
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        # A gateway of its own: the operator's books and files have nothing to do with this.
        apart = replace(these, data=Path(folder), database="", media="", billing="postpaid")
        asyncio.run(_check(apart, slug, model, yes, record))


async def _check(these: Settings, slug: str, model: str | None, yes: bool, record: Path | None) -> None:
    async with opened_gateway(these) as gateway, working(gateway):
        welcome = await first_start(gateway)
        caller = await gateway.keys.caller(f"Bearer {welcome.key}")
        trial = await _cheapest(gateway, caller, slug, model, recorded=record is not None)
        typer.echo(f"{trial.model} ({trial.task}): at most {trial.usd:f} USD")
        if not yes:
            typer.confirm("Make this call?", abort=True)
        began = gateway.clock.monotonic()
        try:
            answer = await _made(gateway, caller, trial, {"x-service-replay": "record"} if record else {})
        except Problem as problem:
            raise ValueError(f"{slug} does not work: {problem.code}: {problem.message}") from None
        seconds = gateway.clock.monotonic() - began
        typer.echo(f"{slug} works: {_told(trial, answer)} in {seconds:.1f} s, {await _cost(gateway, caller):f} USD")
        if record:
            name = answer.headers["x-service-replay-recording"]
            row = await gateway.recordings.get(caller.org_id, name)
            typer.echo(files.save(record, *await files.written(gateway.recordings, row, inline=False)))


async def _cheapest(gateway: Gateway, caller: Caller, slug: str, model: str | None, *, recorded: bool) -> Trial:
    """By the same quotes that callers get."""
    wanted = model.removeprefix(f"{slug}/") if model else None
    trials: list[Trial] = []
    refusal: Exception = ValueError(f"{slug} has no model to try; name one with --model")
    for one in gateway.catalog.known[slug].models:
        takes_any = one.upstream == ANY
        if (takes_any and not wanted) or (wanted and not takes_any and wanted not in _names(slug, one)):
            continue
        if recorded and one.op.task == "chat":
            refusal = ValueError("conversations are not recorded; choose another model, or leave --record away")
            continue
        try:
            trials.append(await _quoted(gateway, caller, one.op.task, f"{slug}/{wanted if takes_any else one.id}"))
        except Problem as problem:
            refusal = problem
    if not trials:
        raise refusal
    return min(trials, key=lambda one: one.usd)


def _names(slug: str, model: Model) -> tuple[str, ...]:
    return model.id, model.id.removeprefix(f"{slug}/"), model.upstream


async def _quoted(gateway: Gateway, caller: Caller, task: str, model: str) -> Trial:
    path, endpoint = _ENDPOINTS[task]
    body = {"model": model, **_wish(task)}
    try:
        answer = await endpoint(gateway, _call(gateway, caller, path, body, query={"dryRun": "true"}))
    except Problem:
        if task != "video":
            raise
        body["input_reference"] = {"image_url": _picture()}  # some only move pictures
        answer = await endpoint(gateway, _call(gateway, caller, path, body, query={"dryRun": "true"}))
    return Trial(task, model, body, Decimal(answer.json["total_cost_micros"]) / 1_000_000)


def _wish(task: str) -> dict[str, Any]:
    if task == "chat":
        return {"messages": [{"role": "user", "content": "Say OK."}], "max_tokens": 16}
    wish: dict[str, Any] = {"prompt": _WORDS}
    if task in ("edit", "upscale"):
        wish["image"] = _picture()
    return wish


def _picture() -> str:
    return "data:image/png;base64," + b64encode(convert.sample_image(512, 512)).decode()


async def _made(gateway: Gateway, caller: Caller, trial: Trial, headers: Mapping[str, str]) -> Response:
    path, endpoint = _ENDPOINTS[trial.task]
    answer = await endpoint(gateway, _call(gateway, caller, path, trial.body, headers=headers))
    if trial.task != "video":
        return answer
    asked = _call(gateway, caller, path, None, path={"id": answer.json["id"]})
    async with asyncio.timeout(_FILM_SECONDS):
        while (answer := await retrieve.video(gateway, asked)).json["status"] not in ("completed", "failed"):
            await gateway.clock.sleep(0.5)
    if answer.json["status"] == "failed":
        raise retrieve.problem_of(answer.json["error"]["code"], answer.json["error"]["message"])
    return answer


def _call(
    gateway: Gateway,
    caller: Caller,
    endpoint: str,
    body: Any,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    path: Mapping[str, str] | None = None,
) -> Call:
    at_ms = gateway.clock.now_ms()
    return Call(
        id=new_id("req", at_ms),
        caller=caller,
        endpoint=endpoint,
        at_ms=at_ms,
        started=gateway.clock.monotonic(),
        headers=headers or {},
        query=query or {},
        path=path or {},
        body=json.dumps(body).encode(),
        json=body,
        base_url=gateway.settings.base_url,
    )


def _told(trial: Trial, answer: Response) -> str:
    if trial.task == "chat":
        return f"{len(answer.body or b'')} bytes of conversation"
    if trial.task == "video":
        return f"a film of {answer.json['seconds']} s, {answer.json['size']}"
    return f"a picture of {answer.json['size']}"


async def _cost(gateway: Gateway, caller: Caller) -> Decimal:
    """What the books say, in which there is nothing but this call; a conversation's are closed a moment later."""
    async with asyncio.timeout(_REMOTE_SECONDS):
        while True:
            page = await gateway.requests.list_records(caller.org_id, Filters(status="completed"))
            if page.data:
                return Decimal(str(page.data[0]["cost"]))
            await gateway.clock.sleep(0.01)
