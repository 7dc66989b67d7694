"""Make effects and music from the command line."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import (
    STDOUT,
    DryRun,
    Fields,
    Model,
    Number,
    Prompt,
    check_output,
    default_model,
    given,
    output_paths,
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, is_piped_out, percentage, print_json, save_parts, say, size_text, usd
from penstock.sound.formats import FILE_FORMATS

_PATH = "/compat/v1/audio/generations"
_ENDINGS = [f".{name}" for name in FILE_FORMATS]

Seconds = Annotated[str | None, typer.Option(help="Length in seconds.")]
SoundOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write, or `-` for stdout. Its extension sets the format.")
]
Resume = Annotated[str | None, typer.Option(help="Id of a sound that was started before: wait for it and save it.")]


def sound(
    prompt: Prompt = None,
    model: Model = None,
    seconds: Seconds = None,
    loop: Annotated[bool, typer.Option("--loop", help="A sound that can be repeated without a seam.")] = False,
    n: Number = None,
    output: SoundOutput = None,
    fields: Fields = None,
    resume: Resume = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a sound from its description, and save it."""
    gateway = find_gateway(url, key, data, config)
    check_output(output, as_json, endings=_ENDINGS)
    if resume is None:
        body = {
            "model": model or default_model(gateway, "text-to-sound"),
            "prompt": prompt_text(prompt),
            **given({"seconds": seconds, "loop": loop or None, "n": n, "output_format": _format(output)}),
            **parse_fields(fields),
        }
        resume = _start(gateway, body, dry_run, as_json)
    if resume is not None:
        _save(gateway, _await(gateway, resume, "sound"), output, as_json)


def music(
    prompt: Prompt = None,
    model: Model = None,
    seconds: Seconds = None,
    lyrics: Annotated[
        Path | None, typer.Option(help="File with the words of a song.", exists=True, dir_okay=False)
    ] = None,
    instrumental: Annotated[bool, typer.Option("--instrumental", help="Music without a voice.")] = False,
    n: Number = None,
    output: SoundOutput = None,
    fields: Fields = None,
    resume: Resume = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make music from its description or its words, and save it."""
    gateway = find_gateway(url, key, data, config)
    check_output(output, as_json, endings=_ENDINGS)
    if resume is None:
        words = lyrics.read_text() if lyrics else None
        asked = {
            "prompt": prompt_text(prompt) if prompt or not words else None,
            "seconds": seconds,
            "lyrics": words,
            "instrumental": instrumental or None,
            "n": n,
            "output_format": _format(output),
        }
        body = {"model": model or default_model(gateway, "text-to-music"), **given(asked), **parse_fields(fields)}
        resume = _start(gateway, body, dry_run, as_json)
    if resume is not None:
        _save(gateway, _await(gateway, resume, "music"), output, as_json)


def _format(output: Path | None) -> str | None:
    """The format that the file's ending names."""
    return output.suffix.lower().removeprefix(".") if output and output.suffix else None


def _start(gateway: GatewayClient, body: dict[str, Any], dry_run: bool, as_json: bool) -> str | None:
    """The id of a sound that was started; None after an estimate, which is printed."""
    if dry_run:
        print_estimate(gateway.post(_PATH, body, dryRun=True), as_json)
        return None
    return str(gateway.post(_PATH, body).body["id"])


def _await(gateway: GatewayClient, sound_id: str, command: str) -> dict[str, Any]:
    """Poll a sound until it has ended, as often as the gateway asks for."""
    try:
        with percentage("Starting") as bar:
            while (state := gateway.get_sound(sound_id)).pause_seconds is not None:
                found = state.job
                text = f"{found['model']} {found['status'].replace('_', ' ')}"
                bar.update(description=text, completed=found.get("progress") or 0)
                time.sleep(state.pause_seconds)
            return state.job
    except KeyboardInterrupt:
        say(f"The sound is still being made. To wait for it again: penstock {command} --resume {sound_id}")
        raise


def _save(gateway: GatewayClient, found: Mapping[str, Any], output: Path | None, as_json: bool) -> None:
    if found["status"] == "failed":
        raise CallFailed(f"{found['error']['message']} ({found['error']['code']})")
    files: list[Path] = []
    if output == STDOUT or (output is None and is_piped_out() and not as_json):
        for _, part in gateway.download(f"{_PATH}/{found['id']}/content"):
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    elif output or not as_json:
        files = _save_files(gateway, found, output)
    if as_json:
        print_json({**found, "files": [str(file) for file in files]})
        return
    metadata = found["metadata"]
    say(f"{metadata['executed_model']}, {usd(metadata['cost'])}, request {found['id']}")


def _save_files(gateway: GatewayClient, found: Mapping[str, Any], output: Path | None) -> list[Path]:
    outputs = found.get("outputs") or [found["output"]]
    ending = {"audio/mpeg": "mp3"}.get(outputs[0]["content_type"], outputs[0]["content_type"].removeprefix("audio/"))
    files = output_paths(output, {"id": found["id"], "output_format": ending}, len(outputs))
    for item, file in zip(outputs, files, strict=True):
        size = save_parts(gateway.download(item["url"]), file)
        length = f"{item['seconds']:g} s, " if item.get("seconds") else ""
        say(f"Saved {file} ({length}{size_text(size)})")
    return files
