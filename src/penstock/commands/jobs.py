"""What the commands that make videos and sounds share: to wait for a job, and to save its files."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.client.failures import CallFailed
from penstock.client.results import Kind, generation_path
from penstock.commands.call_options import STDOUT, output_paths
from penstock.commands.gateway_client import GatewayClient
from penstock.commands.output import is_piped_out, percentage, print_json, save_parts, say, size_text, usd


def wait_for_job(gateway: GatewayClient, job_id: str, kind: Kind, when_left: str) -> dict[str, Any]:
    """Poll a job until it has ended, as often as the gateway asks for. Ctrl-C says `when_left`."""
    try:
        with percentage("Starting") as bar:
            while (state := gateway.get_job(job_id, kind)).pause_seconds is not None:
                found = state.job
                text = f"{found['model']} {found['status'].replace('_', ' ')}"
                bar.update(description=text, completed=found.get("progress") or 0)
                time.sleep(state.pause_seconds)
            return state.job
    except KeyboardInterrupt:
        say(when_left)
        raise


def save_job(
    gateway: GatewayClient,
    found: Mapping[str, Any],
    kind: Kind,
    output: Path | None,
    as_json: bool,
    *,
    ending: Callable[[Mapping[str, Any]], str],
    about: Callable[[Mapping[str, Any]], str],
) -> None:
    """Save the files of a job that has ended, or write them to stdout. `ending` and `about` give the ending and a few
    words of an output. Raises CallFailed for a job that failed.
    """
    if found["status"] == "failed":
        raise CallFailed(f"{found['error']['message']} ({found['error']['code']})")
    files: list[Path] = []
    if output == STDOUT or (output is None and is_piped_out() and not as_json):
        for _, part in gateway.download(f"{generation_path(found['id'], kind)}/content"):
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    elif output or not as_json:
        outputs = found.get("outputs") or [found["output"]]
        files = output_paths(output, {"id": found["id"], "output_format": ending(outputs[0])}, len(outputs))
        for item, file in zip(outputs, files, strict=True):
            size = save_parts(gateway.download(item["url"]), file)
            say(f"Saved {file} ({about(item)}{size_text(size)})")
    if as_json:
        print_json({**found, "files": [str(file) for file in files]})
        return
    metadata = found["metadata"]
    say(f"{metadata['executed_model']}, {usd(metadata['cost'])}, request {found['id']}")
