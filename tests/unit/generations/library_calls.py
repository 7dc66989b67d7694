"""Calls of the library: list outputs, change them, share them."""

from typing import Any

from penstock.api.endpoints import outputs
from penstock.schema import Caller
from tests.gateway import RunningGateway


async def library(running: RunningGateway, caller: Caller | None = None, **query: str) -> list[dict[str, Any]]:
    return list((await outputs.list_outputs(running.gateway, running.call(query=query, caller=caller))).json["data"])


async def change(running: RunningGateway, output_id: str, caller: Caller | None = None, **body: Any) -> Any:
    return (await outputs.change_output(running.gateway, running.call(body, output_id=output_id, caller=caller))).json


async def share(running: RunningGateway, output_id: str, caller: Caller | None = None, **body: Any) -> Any:
    return (await outputs.share_output(running.gateway, running.call(body, output_id=output_id, caller=caller))).json
