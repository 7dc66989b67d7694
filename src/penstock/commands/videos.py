"""Make videos from the command line."""

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
    Inputs,
    Model,
    Number,
    Output,
    Prompt,
    Size,
    check_output,
    default_model,
    given,
    input_urls,
    output_paths,
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import GatewayClient, Key, Url, find_gateway
from penstock.commands.output import Json, is_piped_out, percentage, print_json, save_parts, say, size_text, usd


def video(
    prompt: Prompt = None,
    model: Model = None,
    seconds: Annotated[str | None, typer.Option(help="Duration in seconds.")] = None,
    size: Size = None,
    n: Number = None,
    inputs: Inputs = None,
    output: Output = None,
    fields: Fields = None,
    resume: Annotated[
        str | None, typer.Option(help="Id of a video that was started before: wait for it and save it.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a video: start it, wait until it is done, and save it."""
    gateway = find_gateway(url, key, data, config)
    check_output(output, as_json)
    if resume is None:
        mode = "image-to-video" if inputs else "text-to-video"
        references = [{"image_url": reference} for reference in input_urls(inputs)] if inputs else None
        body = {
            "model": model or default_model(gateway, mode),
            "prompt": prompt_text(prompt),
            **given({"seconds": seconds, "size": size, "n": n, "input_reference": references}),
            **parse_fields(fields),
        }
        if dry_run:
            print_estimate(gateway.post("/compat/v1/videos", body, dryRun=True), as_json)
            return
        resume = gateway.post("/compat/v1/videos", body).body["id"]
    _save_video(gateway, _await_video(gateway, str(resume)), output, as_json)


def _await_video(gateway: GatewayClient, video_id: str) -> dict[str, Any]:
    """Poll a video until it has ended, as often as the gateway asks for."""
    try:
        with percentage("Starting") as bar:
            while (state := gateway.get_video(video_id)).pause_seconds is not None:
                found = state.job
                text = f"{found['model']} {found['status'].replace('_', ' ')}"
                bar.update(description=text, completed=found.get("progress") or 0)
                time.sleep(state.pause_seconds)
            return state.job
    except KeyboardInterrupt:
        say(f"The video keeps rendering. To wait for it again: penstock video --resume {video_id}")
        raise


def _save_video(gateway: GatewayClient, found: Mapping[str, Any], output: Path | None, as_json: bool) -> None:
    if found["status"] == "failed":
        raise CallFailed(f"{found['error']['message']} ({found['error']['code']})")
    files: list[Path] = []
    if output == STDOUT or (output is None and is_piped_out() and not as_json):
        _write_to_stdout(gateway, found)
    elif output or not as_json:
        files = _save_files(gateway, found, output)
    if as_json:
        print_json({**found, "files": [str(file) for file in files]})
        return
    metadata = found["metadata"]
    say(f"{metadata['executed_model']}, {usd(metadata['cost'])}, request {found['id']}")


def _write_to_stdout(gateway: GatewayClient, found: Mapping[str, Any]) -> None:
    for _, part in gateway.download(f"/compat/v1/videos/{found['id']}/content"):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def _save_files(gateway: GatewayClient, found: Mapping[str, Any], output: Path | None) -> list[Path]:
    outputs = found.get("outputs") or [found["output"]]
    files = output_paths(output, {"id": found["id"], "output_format": "mp4"}, len(outputs))
    for item, file in zip(outputs, files, strict=True):
        size = save_parts(gateway.download(item["url"]), file)
        say(f"Saved {file} ({found['size']}, {found['seconds']} s, {size_text(size)})")
    return files
