"""Run a trial of models from a file of prompts, and show how each did."""

import json
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import DryRun, Fields, given, parse_fields
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, percentage, print_json, say, usd
from penstock.commands.tables import show_table

_PATH = "/v1/trials"
_KINDS = ("image", "video", "chat")
_LOOK_SECONDS = 1.0

app = typer.Typer(no_args_is_help=True, help="Compare models on the same prompts, with figures.")


@app.command("run")
def run_trial(
    file: Annotated[Path, typer.Argument(help="CSV with a column `prompt`, or JSONL.")],
    models: Annotated[str, typer.Option(help="Two to six models, separated by commas.")],
    kind: Annotated[str, typer.Option(help="What the models make: image, video or chat.")] = "image",
    name: Annotated[str | None, typer.Option(help="Your name for the trial.")] = None,
    fields: Fields = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars that the trial may cost.")] = None,
    share: Annotated[bool, typer.Option("--share", help="Print a link by which people vote.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make each prompt with each model. Ctrl-C leaves the trial running; `penstock trial show` says how far it is."""
    if kind not in _KINDS:
        raise CallFailed(f"--kind must be one of {', '.join(_KINDS)}")
    gateway = find_gateway(url, key, data, config)
    form = {
        "kind": kind,
        "parameters": json.dumps(parse_fields(fields)),
        **{f"models[{place}]": model.strip() for place, model in enumerate(models.split(","))},
        **given({"name": name or file.stem, "max_cost": max_cost}),
    }
    rows = file.read_bytes()
    if dry_run:
        estimate = gateway.post_file(_PATH, file.name, rows, form, dryRun=True).body
        (print_json if as_json else _print_estimate)(estimate)
        return
    trial = gateway.post_file(_PATH, file.name, rows, form, key=str(uuid4())).body
    say(f"{trial['id']}: {trial['counts']['total']} outputs, about {usd(trial['estimated_cost'])}")
    ended = _follow(gateway, trial["id"])
    if share:
        link = gateway.post(f"{_PATH}/{trial['id']}/link", {}).body
        say(f"Vote until {link['expires_at'][:10]}: {link['url']}")
    (print_json if as_json else _print_results)(ended)


@app.command("show")
def show_trial(
    trial_id: Annotated[str, typer.Argument(help="Id of the trial, such as trial_….")],
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show what each model cost, how long it took, and how often it won."""
    trial = find_gateway(url, key, data, config).get(f"{_PATH}/{trial_id}").body
    (print_json if as_json else _print_results)(trial)


@app.command("resume")
def resume_trial(
    trial_id: Annotated[str, typer.Argument(help="Id of the trial, such as trial_….")],
    max_cost: Annotated[float | None, typer.Option(help="Dollars that the trial may cost, with what it has.")] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Go on with a paused trial, perhaps with a larger budget, and print its results."""
    gateway = find_gateway(url, key, data, config)
    trial = gateway.get(f"{_PATH}/{trial_id}").body
    gateway.post(f"/v1/batches/{trial['batch_id']}/resume", given({"max_cost": max_cost}))
    (print_json if as_json else _print_results)(_follow(gateway, trial_id))


def _follow(gateway: GatewayClient, trial_id: str) -> dict[str, Any]:
    """Show the progress of a trial until it has ended. Raises CallFailed if it is paused."""
    with percentage("Running") as bar:
        while True:
            trial: dict[str, Any] = gateway.get(f"{_PATH}/{trial_id}").body
            counts = trial["counts"]
            done = counts["completed"] + counts["failed"]
            bar.update(description=f"{done}/{counts['total']} outputs", completed=100 * done / max(1, counts["total"]))
            if trial["status"] in ("completed", "cancelled"):
                return trial
            if trial["status"] == "paused":
                raise CallFailed(f"{trial_id} is paused ({trial['reason']}); {_how_to_resume(trial)} goes on")
            time.sleep(_LOOK_SECONDS)


def _how_to_resume(trial: dict[str, Any]) -> str:
    larger = " with a larger --max-cost" if trial["reason"] == "max_cost" else ""
    return f"`penstock trial resume {trial['id']}`{larger}"


def _print_estimate(estimate: dict[str, Any]) -> None:
    typer.echo(f"{estimate['rows']} outputs cost about {usd(estimate['estimated_cost'])}")
    for model in estimate["models"]:
        typer.echo(f"  {model['model']}: {usd(model['estimated_cost'])}")


def _print_results(trial: dict[str, Any]) -> None:
    rows = [
        [
            result["model"],
            _rate(result),
            f"{result['wins']}/{result['losses']}/{result['ties']}",
            "-" if result["cost_per_output"] is None else usd(result["cost_per_output"]),
            "-" if result["seconds"] is None else f"{result['seconds']:.1f} s",
            result["failed"],
        ]
        for result in trial["results"]
    ]
    show_table("Results", ["model", "win rate", "won/lost/tied", "each", "takes", "failed"], rows)


def _rate(result: dict[str, Any]) -> str:
    if result["win_rate"] is None:
        return "no votes"
    rate, low, high = (100 * result[name] for name in ("win_rate", "win_rate_low", "win_rate_high"))
    return f"{rate:.0f} % ({low:.0f}-{high:.0f})"
