"""A gateway works on while a newer version, which starts beside it, adds columns to their tables."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.api.endpoints.generations import list_videos
from penstock.api.endpoints.recordings import list_recordings
from penstock.api.endpoints.requests import list_requests, retrieve_request
from penstock.api.endpoints.webhooks import list_messages
from penstock.chat.endpoint import complete_chat
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.store import postgres
from penstock.store.base import Dialect
from tests.databases import without_waiting_for_the_disk
from tests.gateway import Installation, RunningGateway
from tests.postgres import migrate
from tests.table_columns import additions

Endpoint = Callable[[Gateway, Call], Coroutine[Any, Any, Response]]
FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"kind": "image"},
    {"status": "completed"},
    {"user": "u"},
    {"session_id": "s"},
    {"model": "image-1"},
)


async def test_every_kind_of_call_works_on_after_columns_were_added(
    request: pytest.FixtureRequest, dialect: Dialect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ""
    if dialect == "postgres":
        monkeypatch.setattr(postgres, "DURABILITY", {})
        url = request.getfixturevalue("fresh_database")  # the tables of others must stay as they are
        await migrate(url)
    else:
        without_waiting_for_the_disk(monkeypatch)
    async with Installation(tmp_path / "data", url).open() as running:
        first = await make_everything(running)
        shown = await show_everything(running, first)
        await running.change(*additions())
        assert await show_everything(running, first) == shown
        await show_everything(running, await make_everything(running))
        await running.purge(first)


async def make_everything(running: RunningGateway) -> str:
    """Chat, draw, edit, record, replay and film. Returns the id of the video."""
    chat = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}], "user": "u"}
    await complete_chat(running.gateway, running.call(chat, endpoint="/compat/v1/chat/completions"))
    for headers in (
        {"x-service-replay": "record", "x-service-session-id": "s"},
        {"x-service-replay": "replay-or-error"},
    ):
        assert (await running.image(headers=headers))["data"]
    video_id = str((await running.video()).json["id"])
    await running.wait_for_video(video_id)
    return video_id


async def show_everything(running: RunningGateway, video_id: str) -> list[Any]:
    """What lists and details show of the calls up to a video; URLs are new each time."""

    async def show(endpoint: Endpoint, query: dict[str, str] | None = None, request_id: str = "") -> Any:
        response = await endpoint(running.gateway, running.call(query=query, request_id=request_id))
        return msgspec.json.decode(msgspec.json.encode(response.json))

    lists = [await show(list_requests, query) for query in FILTERS]
    lists += [await show(endpoint) for endpoint in (list_videos, list_recordings, list_messages)]
    ids = [[entry["id"] for entry in found["data"]] for found in lists]
    assert all(ids[:-1]), "each list but that of webhooks has something"
    record = await show(retrieve_request, request_id=video_id)
    del record["outputs"]
    return [ids, record, (await running.get_video(video_id))["status"], await running.money()]
