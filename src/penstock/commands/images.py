"""Generate, edit and upscale images from the command line."""

import base64
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.client.failures import CallFailed
from penstock.commands.call_options import (
    STDOUT,
    DryRun,
    Fields,
    Inputs,
    Model,
    Number,
    Output,
    Prompt,
    Size,
    check_output,
    default_model,
    given,
    image_url,
    input_urls,
    output_paths,
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, is_piped_out, print_json, save_parts, say, size_text, usd, waiting
from penstock.imaging.formats import ALL_FORMATS

_FORMATS = {".jpg": "jpeg", **{f".{name}": name for name in ALL_FORMATS}}


@dataclass(frozen=True, slots=True)
class _Options:
    """What every command here takes beside its own fields."""

    output: Path | None
    dry_run: bool
    as_json: bool


def image(
    prompt: Prompt = None,
    model: Model = None,
    size: Size = None,
    n: Number = None,
    output: Output = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Generate images from a prompt."""
    gateway = find_gateway(url, key, data, config)
    body = {
        "model": model or default_model(gateway, "text-to-image"),
        "prompt": prompt_text(prompt),
        **given({"size": size, "n": n}),
        **parse_fields(fields),
    }
    _make_images(gateway, "/compat/v1/images/generations", body, _Options(output, dry_run, as_json))


def edit(
    prompt: Prompt = None,
    inputs: Inputs = None,
    mask: Annotated[str | None, typer.Option(help="PNG file; its transparent pixels are the area to edit.")] = None,
    model: Model = None,
    size: Size = None,
    n: Number = None,
    output: Output = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Edit images: pass them with --input and describe the change."""
    gateway = find_gateway(url, key, data, config)
    body = {
        "model": model or default_model(gateway, "image-edit"),
        "prompt": prompt_text(prompt),
        "image": input_urls(inputs),
        **given({"size": size, "n": n, "mask": mask and image_url(mask)}),
        **parse_fields(fields),
    }
    _make_images(gateway, "/compat/v1/images/edits", body, _Options(output, dry_run, as_json))


def upscale(
    files: Annotated[list[str] | None, typer.Argument(help="Image file or HTTPS URL.")] = None,
    inputs: Inputs = None,
    factor: Annotated[float | None, typer.Option("--factor", help="By how much each side grows.")] = None,
    model: Model = None,
    output: Output = None,
    fields: Fields = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Enlarge an image."""
    gateway = find_gateway(url, key, data, config)
    body = {
        "model": model or default_model(gateway, "upscale"),
        "image": input_urls([*(files or ()), *(inputs or ())]),
        **given({"scale_factor": factor}),
        **parse_fields(fields),
    }
    _make_images(gateway, "/compat/v1/images/edits", body, _Options(output, dry_run, as_json))


def _make_images(gateway: GatewayClient, path: str, body: dict[str, Any], options: _Options) -> None:
    check_output(options.output, options.as_json, list(_FORMATS))
    if options.dry_run:
        print_estimate(gateway.post(path, body, dryRun=True), options.as_json)
        return
    to_stdout = options.output == STDOUT or (options.output is None and is_piped_out() and not options.as_json)
    if to_stdout and body.get("n", 1) > 1:
        raise CallFailed("stdout takes one image; name a file with --output for several")
    if options.output and (file_format := _FORMATS.get(options.output.suffix.lower())):
        body = {"output_format": file_format, **body}
    begun = time.monotonic()
    with waiting(f"Waiting for {body['model']}"):
        result = gateway.post(path, {**body, "response_format": "b64_json"}).body
    contents = [base64.b64decode(item.pop("b64_json")) for item in result["data"]]
    saved: list[Path] = []
    if to_stdout:
        sys.stdout.buffer.write(contents[0])
        sys.stdout.buffer.flush()
    elif options.output or not options.as_json:
        saved = [
            _save(content, path)
            for content, path in zip(contents, output_paths(options.output, result, len(contents)), strict=True)
        ]
    if options.as_json:
        print_json({**result, "files": [str(path) for path in saved]})
        return
    _say_images(result, contents, saved, time.monotonic() - begun)


def _save(content: bytes, path: Path) -> Path:
    save_parts(iter([(len(content), content)]), path)
    return path


def _say_images(result: Mapping[str, Any], contents: Sequence[bytes], saved: Sequence[Path], seconds: float) -> None:
    for path, content in zip(saved, contents, strict=False):
        say(f"Saved {path} ({result['size']}, {size_text(len(content))})")
    for item in result["data"]:
        if revised := item.get("revised_prompt"):
            say(f"The prompt that was used: {revised}")
    metadata = result["metadata"]
    say(f"{metadata['executed_model']}, {usd(metadata['cost'])}, {seconds:.1f} s, request {result['id']}")
