"""`penstock recordings check`: make recorded calls again, for real, and say what has changed."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.commands.data_folder import Config
from penstock.commands.output import Json, print_json, say, usd
from penstock.commands.tables import show_table
from penstock.recordings.drift import KINDS, Limits
from penstock.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from penstock.commands.drift_report import CheckedCall

_DRIFTED = 1


def check_recordings(
    paths: Annotated[list[Path], typer.Argument(help="Recording files, or folders of them.")],
    report: Annotated[
        Path | None, typer.Option(help="Write a page with everything that was compared, pictures side by side.")
    ] = None,
    fail_on: Annotated[
        str, typer.Option(help=f"Which changes make the exit status {_DRIFTED}: some of {', '.join(KINDS)}.")
    ] = "failed,shape,cost",
    cost_percent: Annotated[float, typer.Option(help="From where on another cost is a change.")] = 5.0,
    latency_percent: Annotated[float, typer.Option(help="How much slower is a change.")] = 100.0,
    distance: Annotated[float, typer.Option(help="From which distance on, 0 to 1, a picture is another one.")] = 0.4,
    max_usd: Annotated[float, typer.Option(help="What all calls together may cost at most.")] = 10.0,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="How many calls are made at a time.")] = 4,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make recorded calls again with the providers whose credentials are in the environment, and compare.

    The recordings stay as they are.
    """
    wanted = [kind.strip() for kind in fail_on.split(",") if kind.strip()]
    if unknown := [kind for kind in wanted if kind not in KINDS]:
        raise typer.BadParameter(f"{', '.join(unknown)}: the kinds of changes are {', '.join(KINDS)}")
    from penstock.commands.drift_check import check_all  # imported here because it imports a whole gateway
    from penstock.commands.drift_report import report_page

    configure_logs("error", "auto")  # to stderr: stdout has the result
    limits = Limits(cost_percent, latency_percent, distance)
    checked = check_all(paths, limits, max_usd=str(max_usd), at_once=at_once, config=config)
    if report:
        report.write_text(report_page(checked), encoding="utf-8")
    _show(checked, report, as_json)
    if any(change.kind in wanted for call in checked for change in call.changes):
        raise typer.Exit(_DRIFTED)


def _show(checked: "list[CheckedCall]", report: Path | None, as_json: bool) -> None:
    if as_json:
        print_json([call.summary for call in checked])
        return
    rows = [[call.name, call.before.document.model, call.verdict, "; ".join(call.texts)] for call in checked]
    show_table("Recordings, made again", ["recording", "model", "result", "changes"], rows, as_json)
    spent = sum((call.after.cost or 0 for call in checked if call.after), start=Decimal(0))
    say(f"{len(checked)} recordings, {usd(spent)}" + (f"; see {report}" if report else ""))
