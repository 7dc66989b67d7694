"""What the commands that call a gateway share: options, fields of the call, and how its cost is shown."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer

from penstock.client.connection import Reply
from penstock.client.failures import CallFailed
from penstock.client.files import input_url, numbered_paths
from penstock.commands.gateway_client import GatewayClient
from penstock.commands.output import is_piped_out, print_json, read_stdin, usd

STDOUT = Path("-")
_BUILT_IN = "atelier"  # the owner of the models that every gateway has

Prompt = Annotated[str | None, typer.Argument(help="What to make. Omit it, or pass `-`, to read it from stdin.")]
Model = Annotated[
    str | None, typer.Option("--model", "-m", help="Model, as `penstock models` lists it. Default: the built-in one.")
]
Size = Annotated[str | None, typer.Option("--size", "-s", help="WIDTHxHEIGHT, or a proportion such as 16:9.")]
Number = Annotated[int | None, typer.Option("--n", "-n", help="How many to make.")]
Inputs = Annotated[list[str] | None, typer.Option("--input", "-i", help="Image file or HTTPS URL; repeat for several.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write, or `-` for stdout. Its extension sets the image format."),
]
Fields = Annotated[
    list[str] | None, typer.Option("--set", help="Any other field of the call, as name=value; repeat for several.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what the call would cost, and make nothing.")]


def prompt_text(prompt: str | None) -> str:
    """Return the prompt that was given as an argument, or the text on stdin."""
    text = read_stdin() if prompt in (None, "-") else prompt
    if text is None or not text.strip():
        raise CallFailed("there is no prompt: give it as an argument or on stdin")
    return text.strip()


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def parse_fields(fields: Sequence[str] | None) -> dict[str, Any]:
    """Return the fields of --set: a value that is JSON as what it says, any other as text."""
    parsed: dict[str, Any] = {}
    for field in fields or ():
        name, separator, text = field.partition("=")
        if not (name and separator):
            raise CallFailed(f"--set takes name=value, not {field!r}")
        try:
            parsed[name] = json.loads(text)
        except ValueError:
            parsed[name] = text
    return parsed


def input_urls(inputs: Sequence[str] | None) -> list[str]:
    """Return images as the gateway takes them."""
    if not inputs:
        raise CallFailed("there is no image: give a file or an HTTPS URL with --input")
    return [image_url(named) for named in inputs]


def image_url(named: str) -> str:
    """Return an HTTPS URL as it is, and a file as a data URI; `-` is the file on stdin."""
    if named.startswith(("https://", "http://", "data:")):
        return named
    return input_url(sys.stdin.buffer.read() if named == "-" else Path(named))


def default_model(gateway: GatewayClient, mode: str) -> str:
    """Return the built-in model of this mode, or the only model of this mode."""
    models = [model for model in gateway.get("/compat/v1/models").body["data"] if mode in model.get("modes", ())]
    built_in = [model for model in models if model["owned_by"] == _BUILT_IN]
    if built_in or len(models) == 1:
        return str((built_in or models)[0]["id"])
    raise CallFailed(f"choose a {mode} model with --model; `penstock models` lists them")


def print_estimate(reply: Reply, as_json: bool) -> None:
    """Print the cost that a dry run gave, its parts, and which providers would be tried if there are several."""
    if as_json:
        print_json(reply.body)
        return
    typer.echo(f"{usd(reply.body['total_cost_micros'] / 1e6)} at most, with {reply.body['model']}")
    for part in reply.body["components"]:
        kind = " of input" if part["type"] == "input" else ""
        plural = "" if part["quantity"] == 1 else "s"
        unit = f"{part['metric'].replace('_', ' ')}{plural}{kind}"
        typer.echo(f"  {part['quantity']:g} {unit} at {usd(part['unit_price'])}")
    candidates, left_out = reply.body.get("candidates", ()), reply.body.get("left_out", ())
    if len(candidates) + len(left_out) > 1:
        for place, found in enumerate(candidates, 1):
            typer.echo(f"  {place}. {found['model']} at {usd(found['total_cost_micros'] / 1e6)}: {found['reason']}")
        for found in left_out:
            typer.echo(f"  not {found['model']}: {found['reason']}")


def check_output(output: Path | None, as_json: bool, endings: Sequence[str] = ()) -> None:
    """Raise CallFailed if the file cannot be written: before the call, because what it makes is paid for. `endings` are
    those that name a format of the file.
    """
    if output is None and not (as_json or is_piped_out()):
        _check_writable(Path())
    if output is None or output == STDOUT:
        return
    if output.is_dir():
        raise CallFailed(f"{output} is a folder: name a file in it with --output")
    if not output.parent.is_dir():
        raise CallFailed(f"there is no folder {output.parent} for the file of --output")
    if endings and output.suffix and output.suffix.lower() not in endings:
        raise CallFailed(f"--output {output} names no known format: end it with {', '.join(endings)}")
    if not output.exists() or output.is_file():
        _check_writable(output.parent)


def _check_writable(folder: Path) -> None:
    """Raise CallFailed if no file can be created in the folder."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise CallFailed(f"no file can be written in {folder.absolute()}: {problem.strerror}") from None


def output_paths(output: Path | None, result: Mapping[str, Any], count: int) -> list[Path]:
    """Return where the files of a result go: the named file, or several numbered ones."""
    suffix = str(result.get("output_format") or "png").replace("jpeg", "jpg")
    return numbered_paths(output or Path(f"{result['id']}.{suffix}"), count)
