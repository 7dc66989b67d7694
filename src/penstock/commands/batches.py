"""Run, list, show and cancel batches from the command line."""

import hashlib
import json
import sys
import time
import zipfile
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from penstock.client.failures import CallFailed, Refused
from penstock.commands.call_options import DryRun, Fields, Model, given, parse_fields
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Bar, Json, percentage, print_json, report, save_parts, say, usd
from penstock.commands.tables import show_table

BatchId = Annotated[str, typer.Argument(help="Id of the batch, such as batch_….")]
_PATH = "/v1/batches"
_STATE = "batch.json"  # in the folder of the results: which batch is being run into it
_ARCHIVE = ".results.zip"
_ENDPOINTS = {
    "image": "/v1/images/generations",
    "edit": "/v1/images/edits",
    "video": "/v1/videos",
    "chat": "/v1/chat/completions",
}
_LOOK_SECONDS = 1.0
_INTERRUPTED = 130  # the exit status of a program that Ctrl-C has ended
# Why a batch is paused that this command cannot go on with by itself.
_REASONS = {
    "max_cost": "the next row might cost more than is left of --max-cost; run again with a larger one",
    "insufficient_balance": "the balance of your organization is used up",
    "rate_limited": "a limit of dollars is reached",
    "key_revoked": "its key was revoked",
}

app = typer.Typer(no_args_is_help=True, help="Run many calls from a file: priced first, paid once each.")


@app.command("run")
def run_batch(
    file: Annotated[Path, typer.Argument(help="CSV whose first row names the fields, or JSONL.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files and results.jsonl.")],
    kind: Annotated[str, typer.Option(help="What rows without `url` make: image, edit, video or chat.")] = "image",
    model: Model = None,
    fields: Fields = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars that the rows together may cost.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="How many rows run at a time, at most.")] = None,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Leave out rows that are wrong.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run a file of calls and save what they make. Ctrl-C pauses it; the same command goes on, paying nothing twice."""
    if kind not in _ENDPOINTS:
        raise CallFailed(f"--kind must be one of {', '.join(_ENDPOINTS)}")
    gateway = find_gateway(url, key, data, config)
    rows = file.read_bytes()
    form = {
        "endpoint": _ENDPOINTS[kind],
        "defaults": json.dumps({**given({"model": model}), **parse_fields(fields)}),
        "name": file.name[:200],
        **given({"max_cost": max_cost, "concurrency": concurrency}),
        **({"skip_invalid": "true"} if skip_invalid else {}),
    }
    if dry_run:
        estimate = gateway.post_file(_PATH, file.name, rows, form, dryRun=True).body
        (print_json if as_json else _print_estimate)(estimate)
        return
    batch = _begin(gateway, file.name, rows, form, output)
    ended = _follow(gateway, _resumed(gateway, batch, max_cost, concurrency))
    _save(gateway, ended, output)
    if as_json:
        print_json(ended)
    if ended["counts"]["failed"]:
        raise typer.Exit(1)


@app.command("list")
def list_batches(
    limit: Annotated[int, typer.Option(help="How many, from 1 to 100.")] = 20,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """List batches, newest first."""
    page = find_gateway(url, key, data, config).get(_PATH, limit=limit).body
    rows = [
        [batch["id"], batch["name"], batch["status"], _progress(batch), usd(batch["cost"]), batch["created_at"]]
        for batch in page["data"]
    ]
    if as_json:
        print_json(page["data"])
        return
    show_table("Batches", ["id", "name", "status", "rows", "cost", "created"], rows)


@app.command("show")
def show_batch(
    batch_id: BatchId,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show how far a batch is and what it cost."""
    batch = find_gateway(url, key, data, config).get(f"{_PATH}/{batch_id}").body
    if as_json:
        print_json(batch)
        return
    counts = " ".join(f"{name}={number}" for name, number in batch["counts"].items())
    reason = f" ({batch['reason']})" if batch["reason"] else ""
    budget = "none" if batch["max_cost"] is None else usd(batch["max_cost"])
    typer.echo(f"{batch['id']}: {batch['name'] or 'no name'}, {batch['status']}{reason}")
    typer.echo(f"rows: {counts}")
    typer.echo(f"cost: {usd(batch['cost'])} of about {usd(batch['estimated_cost'])}, budget {budget}")


@app.command("cancel")
def cancel_batch(
    batch_id: BatchId,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Begin no more rows of a batch; those that run go on to their ends."""
    batch = find_gateway(url, key, data, config).post(f"{_PATH}/{batch_id}/cancel", None).body
    text = f"{batch['id']} is {batch['status']}: {_progress(batch)} rows, {usd(batch['cost'])}"
    report(text, as_json, **batch)


# -------------------------------------------------------------------------------------------------------------- running


def _begin(gateway: GatewayClient, name: str, rows: bytes, form: dict[str, Any], output: Path) -> dict[str, Any]:
    """The batch of this file and folder: the one that an earlier run created, or a new one.

    The key by which the gateway knows a repeated call is stored before the call. So a run that is killed at any moment
    leaves one batch at most.
    """
    output.mkdir(parents=True, exist_ok=True)
    state_file = output / _STATE
    asked = {name: value for name, value in form.items() if name not in ("max_cost", "concurrency")}
    digest = hashlib.sha256(rows + json.dumps(asked, sort_keys=True).encode()).hexdigest()
    state = json.loads(state_file.read_text()) if state_file.exists() else None
    if state is None:
        state = {"file": name, "sha256": digest, "key": str(uuid4())}
        state_file.write_text(json.dumps(state))
    elif state["sha256"] != digest:
        raise CallFailed(f"{output} belongs to another batch, of {state['file']}: choose another folder")
    if "id" in state:
        batch: dict[str, Any] = gateway.get(f"{_PATH}/{state['id']}").body
        return batch
    try:
        batch = gateway.post_file(_PATH, name, rows, form, key=state["key"]).body
    except Refused:
        state_file.unlink()
        raise
    state_file.write_text(json.dumps({**state, "id": batch["id"]}))
    say(f"{batch['id']}: {batch['counts']['total']} rows, about {usd(batch['estimated_cost'])}")
    if skipped := batch["counts"]["skipped"]:
        say(f"{skipped} rows are wrong and left out; --dry-run says why")
    return batch


def _resumed(
    gateway: GatewayClient, batch: dict[str, Any], max_cost: float | None, concurrency: int | None
) -> dict[str, Any]:
    """The batch, which goes on if it was paused."""
    if batch["status"] != "paused":
        return batch
    say(f"going on with {batch['id']}, {_progress(batch)} rows")
    changes = given({"max_cost": max_cost, "concurrency": concurrency})
    resumed: dict[str, Any] = gateway.post(f"{_PATH}/{batch['id']}/resume", changes).body
    return resumed


def _follow(gateway: GatewayClient, batch: dict[str, Any]) -> dict[str, Any]:
    """Show the progress of a batch until it has ended. Ctrl-C pauses it. Raises CallFailed if it pauses by itself."""
    path = f"{_PATH}/{batch['id']}"
    try:
        with percentage("Running") as bar:
            while batch["status"] not in ("completed", "cancelled"):
                if batch["status"] == "paused":
                    reason = _REASONS.get(batch["reason"], "somebody has paused it")
                    raise CallFailed(f"{batch['id']} is paused at {_progress(batch)} rows: {reason}")
                _show(bar, batch)
                time.sleep(_LOOK_SECONDS)
                batch = gateway.get(path).body
    except KeyboardInterrupt:
        gateway.post(f"{path}/pause", None)
        say(f"\npaused {batch['id']}; run the same command to go on, or `penstock batch cancel {batch['id']}`")
        sys.exit(_INTERRUPTED)
    return batch


def _show(bar: Bar, batch: dict[str, Any]) -> None:
    counts = batch["counts"]
    done = counts["completed"] + counts["failed"]
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    text = f"{done}/{counts['total']} rows, {usd(batch['cost'])}{failed}"
    bar.update(description=text, completed=100 * done / max(1, counts["total"]))


def _save(gateway: GatewayClient, batch: dict[str, Any], output: Path) -> None:
    """Save the files of a batch and the lines of its results."""
    archive = output / _ARCHIVE
    save_parts(gateway.download(f"{_PATH}/{batch['id']}/results?format=zip"), archive)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(output)
    archive.unlink()
    counts = batch["counts"]
    failed = f", {counts['failed']} failed: see {output / 'results.jsonl'}" if counts["failed"] else ""
    say(f"Saved {counts['completed']} rows in {output}, {usd(batch['cost'])}{failed}")


def _progress(batch: dict[str, Any]) -> str:
    counts = batch["counts"]
    return f"{counts['completed'] + counts['failed']}/{counts['total']}"


def _print_estimate(estimate: dict[str, Any]) -> None:
    typer.echo(
        f"{estimate['rows']} rows cost about {usd(estimate['estimated_cost'])}, "
        f"and {usd(estimate['highest_cost'])} at most"
    )
    for model in estimate["models"]:
        typer.echo(f"  {model['model']}: {model['rows']} rows, {usd(model['estimated_cost'])}")
    for fault in estimate["faults"]:
        column = f", column {fault['column']}" if fault["column"] else ""
        typer.echo(f"  left out: row {fault['row']}{column}: {fault['message']}")
