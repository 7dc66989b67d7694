"""Calls for effects and music through a gateway."""

from collections.abc import Mapping
from typing import Any

from penstock.generations import endpoints, sounds
from penstock.schema import Caller, Response
from tests.gateway import RunningGateway

PATH = "/compat/v1/audio/generations"


async def start(
    running: RunningGateway,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    caller: Caller | None = None,
    **body: Any,
) -> Response:
    body = {"model": "lab/sound", "prompt": "rain on a roof", "seconds": 2, **body}
    fields = {name: value for name, value in body.items() if value is not None}
    call = running.call(fields, endpoint=PATH, query=query, headers=headers, caller=caller)
    return await endpoints.start_sound(running.gateway, call)


async def finished(running: RunningGateway, **body: Any) -> Any:
    """The object of a sound that has ended."""
    job = (await start(running, **body)).json["id"]
    await running.wait_for_request(job)
    return await shown(running, job)


async def shown(running: RunningGateway, sound_id: str) -> Any:
    return (await sounds.sound(running.gateway, running.call(id=sound_id))).json
