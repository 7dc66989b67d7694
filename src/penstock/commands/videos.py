"""Make videos from the command line."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from penstock.commands.call_options import (
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
    parse_fields,
    print_estimate,
    prompt_text,
)
from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.commands.jobs import save_job, wait_for_job
from penstock.commands.output import Json


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
    left = f"The video keeps rendering. To wait for it again: penstock video --resume {resume}"
    found = wait_for_job(gateway, str(resume), "video", left)
    save_job(gateway, found, "video", output, as_json, ending=lambda item: "mp4", about=lambda item: _about(found))


def _about(found: Mapping[str, Any]) -> str:
    return f"{found['size']}, {found['seconds']} s, "
