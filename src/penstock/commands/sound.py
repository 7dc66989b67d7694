"""Make effects and music from the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.commands.call_options import (
    DryRun,
    Fields,
    Model,
    Number,
    Prompt,
    check_output,
    default_model,
    given,
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.jobs import save_job, wait_for_job
from penstock.commands.output import Json
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
        _finish(gateway, resume, "sound", output, as_json)


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
        _finish(gateway, resume, "music", output, as_json)


def _format(output: Path | None) -> str | None:
    """The format that the file's ending names."""
    return output.suffix.lower().removeprefix(".") if output and output.suffix else None


def _start(gateway: GatewayClient, body: dict[str, Any], dry_run: bool, as_json: bool) -> str | None:
    """The id of a sound that was started; None after an estimate, which is printed."""
    if dry_run:
        print_estimate(gateway.post(_PATH, body, dryRun=True), as_json)
        return None
    return str(gateway.post(_PATH, body).body["id"])


def _finish(gateway: GatewayClient, sound_id: str, command: str, output: Path | None, as_json: bool) -> None:
    """Wait for a sound and save it."""
    left = f"The sound is still being made. To wait for it again: penstock {command} --resume {sound_id}"
    found = wait_for_job(gateway, sound_id, "sound", left)
    save_job(gateway, found, "sound", output, as_json, ending=_ending, about=_about)


def _ending(item: Mapping[str, Any]) -> str:
    content_type = str(item["content_type"])
    return {"audio/mpeg": "mp3"}.get(content_type, content_type.removeprefix("audio/"))


def _about(item: Mapping[str, Any]) -> str:
    return f"{item['seconds']:g} s, " if item.get("seconds") else ""
