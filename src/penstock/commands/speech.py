"""Speak a text from the command line, and list the voices that can."""

import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import (
    STDOUT,
    DryRun,
    Fields,
    Model,
    check_output,
    default_model,
    given,
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, is_piped_out, percentage, print_json, save_parts, say, size_text, usd
from penstock.commands.tables import show_table
from penstock.sound.formats import SOUND_FORMATS

_PATH = "/compat/v1/audio/speech"
_ENDINGS = [f".{name}" for name in SOUND_FORMATS]
_STREAMED_LENGTH_MAX = 20_000  # a longer text is a job

Text = Annotated[str | None, typer.Argument(help="What to say. Omit it, or pass `-`, to read it from stdin.")]


def speech(
    text: Text = None,
    model: Model = None,
    voice: Annotated[str | None, typer.Option("--voice", "-v", help="Voice, as `penstock voices` lists it.")] = None,
    speed: Annotated[float | None, typer.Option(help="How fast, from 0.25 to 4.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write, or `-` for stdout. Its extension sets the format."),
    ] = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Speak a text, and save the sound while it arrives."""
    gateway = find_gateway(url, key, data, config)
    check_output(output, as_json=False, endings=_ENDINGS)
    body = {
        "model": model or default_model(gateway, "text-to-speech"),
        "input": prompt_text(text),
        **given({"voice": voice, "speed": speed, "response_format": _format(output)}),
        **parse_fields(fields),
    }
    if dry_run:
        print_estimate(gateway.post(_PATH, body, dryRun=True), as_json)
    else:
        _speak(gateway, body, output, as_json)


def _format(output: Path | None) -> str | None:
    """The format that the file's ending names."""
    return output.suffix.lower().removeprefix(".") if output and output.suffix else None


def _speak(gateway: GatewayClient, body: dict[str, Any], output: Path | None, as_json: bool) -> None:
    begun = time.monotonic()
    is_job = len(body["input"]) > _STREAMED_LENGTH_MAX
    parts = _job_parts(gateway, body) if is_job else gateway.stream_bytes(_PATH, body)
    request_id, first = next(parts)
    sound = (part for _, part in chain([(request_id, first)], parts))
    if output == STDOUT or (output is None and is_piped_out() and not as_json):
        for part in sound:
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        return
    path = output or Path(f"{request_id}.{body.get('response_format', 'mp3')}")
    size = save_parts(((None, part) for part in sound), path)
    cost = gateway.get_request(request_id).body["cost"]
    if as_json:
        print_json({"id": request_id, "file": str(path), "size_bytes": size, "cost": cost})
        return
    say(f"Saved {path} ({size_text(size)})")
    say(f"{body['model']}, {usd(cost)}, {time.monotonic() - begun:.1f} s, request {request_id}")


def _job_parts(gateway: GatewayClient, body: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Have a long text spoken by a job, and yield the sound, with the id of the request, when it is whole."""
    started = str(gateway.start(_PATH, body).body["id"])
    with percentage("Starting") as bar:
        while (state := gateway.get_job(started, "sound")).pause_seconds is not None:
            bar.update(description=f"{body['model']} speaks", completed=state.job.get("progress") or 0)
            time.sleep(state.pause_seconds)
    if error := state.job["error"]:
        raise CallFailed(f"{error['message']} ({error['code']})")
    for _, part in gateway.download(f"/compat/v1/audio/generations/{started}/content"):
        yield started, part


def voices(
    model: Annotated[str | None, typer.Argument(help="Only voices of this model.")] = None,
    search: Annotated[str | None, typer.Option("--search", "-s", help="Only voices with these words.")] = None,
    language: Annotated[str | None, typer.Option("--language", "-l", help="Only voices that speak it.")] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """List voices, and which of OpenAI's voices they speak for."""
    gateway = find_gateway(url, key, data, config)
    found = gateway.get("/compat/v1/audio/voices", model=model, search=search, language=language).body
    if as_json:
        print_json(found["data"])
        return
    rows = [
        [voice["id"], voice["name"], voice["provider"], ", ".join(voice["openai_names"]), ", ".join(voice["models"])]
        for voice in found["data"]
    ]
    show_table("Voices", ["voice", "name", "provider", "speaks for", "models"], rows)
