"""A provider of any installed package may answer inside the gateway's process."""

import base64
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import providers
from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest, UpstreamError
from penstock.fields import UploadedFile
from penstock.generations.retrieve import video_preview
from penstock.imaging.child import ChildTask
from penstock.imaging.workers import TASKS, WorkerPool, WorkFailed
from penstock.media.storage import storage_key
from penstock.models.catalog import Catalog
from penstock.provenance.sealer import Origin
from penstock.providers.spec import File, LocalService, Provider
from penstock.recordings import files
from penstock.schema import Request
from penstock.settings import Settings
from penstock.upstream import local
from penstock.values import InputFile, OrgId
from penstock_atelier.table import PROVIDER
from tests.fake_providers.scripted import mask, mp4, png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.generations.sound_calls import finished
from tests.unit.media.signed_urls import open_url
from tests.unit.speech.speech_calls import speak
from tests.unit.transcription.listen_calls import listen

ORG = OrgId("org_1")

PACKAGE = '''
"""A provider of grey images."""

import io

import msgspec
from PIL import Image

from penstock.imaging.child import ChildTask
from penstock.providers.convert import pixels
from penstock.providers.spec import (
    File, LocalService, Model, Operation, Price, Provider, Reply, Result, converted, passthrough, complete_table,
)


def draw(width, height):
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "grey").save(buffer, "PNG")
    return {"data": buffer.getvalue()}


class Server:
    closed = 0

    def __init__(self, tools):
        self.tools = tools

    async def send(self, request, for_org):
        fields = msgspec.msgpack.decode(request.body)
        if fields["prompt"] == "raise":
            raise RuntimeError("a fault of the provider")
        image = await self.tools.run("draw", {"width": fields["width"], "height": fields["height"]}, for_org)
        return Reply(200, {}, msgspec.msgpack.encode(image))

    async def close(self):
        Server.closed += 1


def read(reply):
    return Result(files=(File(data=msgspec.msgpack.decode(reply.body)["data"]),))


OPERATION = Operation(
    task="image", send="POST /grey", read=read, body="msgpack", takes_extras=False,
    params=complete_table("image", passthrough("prompt"), converted("frame", ("width", "height"), pixels())),
)
PROVIDER = Provider(
    slug="grey", name="Grey", docs="", base_url="grey:",
    local=LocalService(start=Server, tasks={"draw": ChildTask("penstock_grey:draw")}),
    models=(Model(id="grey/plain", upstream="plain", op=OPERATION, prices=(Price(unit="image", usd="0.01"),)),),
)
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that names its provider as an entry point, as an installer leaves it."""
    folder = tmp_path / "site-packages"
    about = folder / "penstock_grey-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "penstock_grey.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-grey\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{providers.ENTRY_POINT_GROUP}]\ngrey = penstock_grey:PROVIDER\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))  # where child processes look
    providers.discover.cache_clear()
    yield folder
    sys.modules.pop("penstock_grey", None)
    providers.discover.cache_clear()


@pytest.mark.usefixtures("installed")
async def test_a_provider_of_an_installed_package_answers_inside_the_gateway(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = await running.image(model="grey/plain", size="48x32")
        assert (made["metadata"]["executed_model"], str(made["metadata"]["cost"])) == ("grey/plain", "0.01")
        assert made["size"] == "48x32"
        with pytest.raises(InvalidRequest, match="`foo` is not a parameter"):
            await running.image(model="grey/plain", foo=1)
        with pytest.raises(UpstreamError, match="Grey"):
            await running.image(model="grey/plain", prompt="raise")
    assert sys.modules["penstock_grey"].Server.closed == 1


def provider(slug: str, **changes: object) -> Provider:
    plain = Provider(slug=slug, name=slug.title(), docs="", base_url=f"{slug}:", models=())
    return replace(plain, **changes)  # type: ignore[arg-type]


async def test_a_server_runs_tasks_of_its_own_provider_only() -> None:
    tools: dict[str, Any] = {}

    def service(slug: str) -> LocalService:
        task = ChildTask("penstock.imaging.convert:normalise_input")
        return LocalService(start=lambda given: tools.setdefault(slug, given), tasks={f"{slug}-task": task})

    pair = [provider("one", local=service("one")), provider("two", local=service("two")), provider("three")]
    tasks = local.child_tasks(pair)
    assert sorted(tasks) == ["one:one-task", "two:two-task"]
    async with WorkerPool(tasks=tasks) as pool:
        assert sorted(local.start_servers(pair, pool)) == ["one", "two"]
        for name in ("two-task", "two:two-task", "image.normalise_input"):
            with pytest.raises(KeyError):
                await tools["one"].run(name, {}, ORG)
        assert pool.pids == []


def data_uri(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


async def import_vector(running: RunningGateway) -> None:
    """Import a recording whose output is not an SVG, though it says so."""
    gateway = running.gateway
    org_id = running.caller.org_id
    await running.image(headers={"x-service-replay": "record"})
    (listed,) = await gateway.recordings.all(org_id)
    row = await gateway.recordings.get(org_id, listed.id)
    recording_file, _ = await files.export_recording(gateway.recordings, row)
    document = {**msgspec.to_builtins(recording_file), "files": [{"content_type": "image/svg+xml", "data": ""}]}
    with pytest.raises(InvalidRequest, match="not an SVG"):
        await files.import_recording(
            gateway.store, gateway.recordings, org_id, document, {}, 1, pool=gateway.worker_pool
        )


@sqlite_only
async def test_every_task_of_a_call_runs_in_the_share_of_the_callers_organization(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = WorkerPool.run
    seen: set[tuple[str, str]] = set()

    async def record(pool: WorkerPool, name: str, /, *, for_org: OrgId, **arguments: Any) -> dict[str, Any]:
        seen.add((name, for_org))
        return await run(pool, name, for_org=for_org, **arguments)

    monkeypatch.setattr(WorkerPool, "run", record)
    async with open_gateway(disabled_providers=()) as running:
        image, hole = data_uri(png(64, 64)), data_uri(mask(64, 64))
        made = await running.image(model="atelier/sketch", output_format="jpeg")
        await open_url(running, made["data"][0]["url"] + "&w=160")
        await speak(running, headers={"accept": "application/json"}, model="lab/voice")
        await running.edit(model="atelier/retouch", image=image, mask=hole)
        await running.edit(model="atelier/enlarge", image=image)
        await running.image(headers={"x-service-replay": "mock"})
        video = await running.video(model="atelier/clip", seconds=1, size="64x64", input_reference=image)
        await running.wait_for_request(video.json["id"])
        await video_preview(running.gateway, running.call(id=video.json["id"]), "thumbnail")
        words = {"model": "atelier/echo", "messages": [{"role": "user", "content": "word"}], "logprobs": True}
        await complete_chat(running.gateway, running.call(words))
        await complete_chat(running.gateway, running.call({**words, "stream": True}))
        org_id = running.caller.org_id
        transfer = running.gateway.media_transfer
        stored = await transfer.store_inputs([InputFile(png(512, 512), "image/png", 512, 512, "image")], 1)
        request = Request(task="edit", model="m", values={}, inputs=tuple(record for record, _ in stored))
        await transfer.read_inputs(request, max_bytes=1000, for_org=org_id)
        await transfer.load_input("edit_video", UploadedFile(mp4()), "x", for_org=org_id)
        drawing = File(data=b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8"/></svg>')
        origin = Origin("req_1", "m", "lab/m", "lab")
        vector = Request(task="image", model="m", values={"output_format": "svg"})
        found = await transfer.store_output("med_" + "0" * 32, drawing, None, vector, origin, for_org=org_id)
        for model in ("atelier/sound", "atelier/music"):
            await finished(running, model=model, seconds=3)
        await import_vector(running)
        await listen(running, model="atelier/listen")
        await running.storage.delete(storage_key(found.output.media_id))
    assert {owner for _, owner in seen} == {org_id}
    of_agents = {"image.shrink", "image.grid"}  # those of commands have children of their own
    all_tasks = {**TASKS, **local.child_tasks([PROVIDER])}
    streams = {name for name, task in all_tasks.items() if task.streams}  # `WorkerPool.stream` runs those
    assert {name for name, _ in seen} == {*all_tasks} - of_agents - streams


@sqlite_only
async def test_a_stream_whose_local_provider_fails_is_a_failure_of_the_provider(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: Any, **__: Any) -> None:
        raise WorkFailed("crashed", "SIGSEGV")

    monkeypatch.setattr(WorkerPool, "run", crash)
    async with open_gateway(disabled_providers=()) as running:
        words = {"model": "atelier/echo", "messages": [{"role": "user", "content": "word"}], "logprobs": True}
        for stream in (False, True):
            with pytest.raises(UpstreamError, match="Atelier"):
                await complete_chat(running.gateway, running.call({**words, "stream": stream}))


def test_without_a_provider_that_mocks_a_mock_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="No provider of this gateway can mock image generation"):
        Catalog([provider("one")], Settings(), {}).mock("image")
