"""Write down what is said in a file, from the command line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import DryRun, Fields, Model, check_output, default_model, given, print_estimate
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.output import Json, save_parts, say, size_text, usd, waiting
from penstock.fields import TRANSCRIPT_FORMS

_TRANSCRIPTIONS = ("/compat/v1/audio/transcriptions", "transcription")
_TRANSLATIONS = ("/compat/v1/audio/translations", "translation")
_FORMS = {".txt": "text", ".srt": "srt", ".vtt": "vtt", ".json": "verbose_json"}

Sound = Annotated[str, typer.Argument(help="File or HTTPS URL of a sound or a video; `-` reads the file from stdin.")]


def transcribe(
    sound: Sound,
    model: Model = None,
    form: Annotated[
        str | None, typer.Option("--format", "-f", help=f"One of {', '.join(TRANSCRIPT_FORMS)}. Default: text.")
    ] = None,
    language: Annotated[str | None, typer.Option("--language", "-l", help="What is spoken, such as `en`.")] = None,
    english: Annotated[bool, typer.Option("--translate", help="Write it down in English.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; .txt, .srt, .vtt and .json choose the format."),
    ] = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Write down what is said in a file, with times if you ask for subtitles."""
    gateway = find_gateway(url, key, data, config)
    check_output(output, as_json=False, endings=list(_FORMS))
    path, mode = _TRANSLATIONS if english else _TRANSCRIPTIONS
    named = _FORMS.get(output.suffix.lower()) if output else None
    body = {
        "model": model or default_model(gateway, mode),
        "response_format": form or named or ("verbose_json" if as_json else "text"),
        **given({"language": language}),
        **_form_fields(fields),
    }
    name, file = _file(sound)
    if name is None:
        body["file_url"] = sound
    if dry_run:
        print_estimate(gateway.post_form(path, body, name, file, dryRun=True), as_json)
        return
    with waiting(f"{body['model']} listens"):
        headers, parts = gateway.stream_form(path, body, name, file)
        text = b"".join(parts)
    if output is None:
        sys.stdout.buffer.write(text if text.endswith(b"\n") else text + b"\n")
        sys.stdout.buffer.flush()
    else:
        say(f"Saved {output} ({size_text(save_parts(iter([(len(text), text)]), output))})")
    say(f"{body['model']}, {usd(float(headers['x-service-cost']))}, request {headers['x-request-id']}")


def _file(sound: str) -> tuple[str | None, bytes]:
    """The name and the bytes of a file; no name for a URL."""
    if sound.startswith(("https://", "http://")):
        return None, b""
    if sound == "-":
        return "sound", sys.stdin.buffer.read()
    try:
        return Path(sound).name, Path(sound).expanduser().read_bytes()
    except OSError as problem:
        raise CallFailed(f"{sound} cannot be read: {problem.strerror}") from None


def _form_fields(fields: list[str] | None) -> dict[str, str]:
    """The fields of --set as texts, which is what a form has."""
    found: dict[str, str] = {}
    for field in fields or ():
        name, separator, text = field.partition("=")
        if not (name and separator):
            raise CallFailed(f"--set takes name=value, not {field!r}")
        found[name] = text
    return found
