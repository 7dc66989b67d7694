"""The interface's endpoints: each with the status it promises and an answer of the shape that the document shows."""

import base64
from urllib.parse import urlsplit

import pytest

from tests.api.http_calls import form, shaped, visiting
from tests.fake_providers.scripted import mask, png
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


async def test_image_generations(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        said = await visit.image(n=2)
        made = shaped("ImageResult", said)
        assert made["id"] == said.headers["x-request-id"]
        assert (made["size"], len(made["data"])) == ("64x64", 2)
        parts = urlsplit(made["data"][0]["url"])
        assert parts.netloc == "test"
        file = await visit.served.ask("GET", f"{parts.path}?{parts.query}")
        assert (file.status, file.headers["content-type"]) == (200, "image/png")
        inline = shaped("ImageResult", await visit.image(response_format="b64_json", output_format="webp"))
        assert base64.b64decode(inline["data"][0]["b64_json"])[8:12] == b"WEBP"
        later = await visit.ask("GET", f"/compat/v1/images/{made['id']}")
        assert shaped("ImageStatus", later)["id"] == made["id"]


async def test_image_edits(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        body, headers = form(
            ("image", png(64, 64), "a.png"),
            ("mask", mask(64, 64), "m.png"),
            ("model", b"touch", None),
            ("prompt", b"a hat", None),
            ("size", b"64x64", None),
        )
        shaped("ImageResult", await visit.ask("POST", "/compat/v1/images/edits", body, headers=headers))
        uri = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
        wish = {"image": uri, "model": "touch", "prompt": "a hat", "size": "64x64"}
        shaped("ImageResult", await visit.ask("POST", "/compat/v1/images/edits", wish))


async def test_videos_from_creation_to_a_late_cancellation(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        said = await visit.video()
        created = shaped("VideoCreated", said, 202)
        assert created["status"] == "queued"
        assert created["id"] == said.headers["x-request-id"]
        path = f"/compat/v1/videos/{created['id']}"
        waiting = await visit.ask("GET", path)
        assert shaped("Video", waiting)["output"] is None
        assert "openai-poll-after-ms" in waiting.headers
        await visit.running.ended(created["id"])
        done = shaped("Video", await visit.ask("GET", path))
        assert (done["status"], done["output"]["content_type"]) == ("completed", "video/mp4")
        content = await visit.ask("GET", f"{path}/content")
        assert (content.status, len(content.body)) == (200, done["output"]["size_bytes"])
        assert shaped("VideoList", await visit.ask("GET", "/compat/v1/videos?limit=1"))["first_id"] == created["id"]
        gone = await visit.ask("DELETE", path)
        assert (gone.status, gone.body) == (204, b"")
        assert shaped("Video", await visit.ask("GET", path))["status"] == "completed"


async def test_a_video_from_a_form(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        body, headers = form(
            ("model", b"film", None), ("prompt", b"a train", None), ("input_reference[0]", png(64, 64), "a.png")
        )
        shaped("VideoCreated", await visit.ask("POST", "/compat/v1/videos", body, headers=headers), 202)


async def test_a_cancelled_video(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        visit.running.lab.states = ("queued",) * 1000
        created = shaped("VideoCreated", await visit.video(), 202)
        assert (await visit.ask("DELETE", f"/compat/v1/videos/{created['id']}")).status == 204
        await visit.running.ended(created["id"])
        shown = shaped("Video", await visit.ask("GET", f"/compat/v1/videos/{created['id']}"))
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CANCELLED")


async def test_chat_completions(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        made = shaped("ChatCompletion", await visit.talk())
        assert made["choices"][0]["message"]["role"] == "assistant"
        stream = await visit.talk(stream=True, stream_options={"include_usage": True})
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.body.rstrip().endswith(b"data: [DONE]")
        assert stream.headers["x-request-id"].startswith("req_")


async def test_models(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        listed = shaped("ModelList", await visit.ask("GET", "/compat/v1/models?schema=true"))
        assert {"picture", "touch", "film", "lab/talk"} <= {model["id"] for model in listed["data"]}
        assert shaped("Model", await visit.ask("GET", "/compat/v1/models/lab/talk"))["id"] == "lab/talk"


@pytest.mark.parametrize("path", ["images/generations", "images/edits", "videos", "chat/completions"])
async def test_a_dry_run_generates_nothing(open_gateway: OpenGateway, path: str) -> None:
    uri = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
    model = {"images/generations": "picture", "images/edits": "touch", "videos": "film"}.get(path, "lab/talk")
    wish = {"model": model, "prompt": "x", "image": uri} if path == "images/edits" else {"model": model, "prompt": "x"}
    if path == "chat/completions":
        wish = {"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 5}  # type: ignore[dict-item]
    async with visiting(open_gateway) as visit:
        before = await visit.running.money()
        shaped("Estimate", await visit.ask("POST", f"/compat/v1/{path}?dryRun=true", wish))
        assert await visit.running.money() == before
        assert visit.running.lab.submits == 0
        assert await visit.running.records() == []


async def test_account(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        made = shaped("ImageResult", await visit.image())
        listed = shaped("RequestList", await visit.ask("GET", "/v1/requests?summary=true"))
        assert (listed["data"][0]["id"], listed["summary"]["count"]) == (made["id"], 1)
        assert listed["summary"]["total_cost"] == listed["data"][0]["cost"] == made["metadata"]["cost"]
        record = shaped("Request", await visit.ask("GET", f"/v1/requests/{made['id']}"))
        assert (record["status"], record["endpoint"]) == ("completed", "/compat/v1/images/generations")
        path = f"/v1/requests/{made['id']}/payloads"
        assert shaped("Purged", await visit.ask("DELETE", path))["media_deleted"] == 1
        assert shaped("Purged", await visit.ask("DELETE", path))["already_purged"] is True
        shaped("KeyList", await visit.ask("GET", "/v1/keys"))
        new = shaped("NewKey", await visit.ask("POST", "/v1/keys", {"name": "n"}))
        shaped("Key", await visit.ask("DELETE", f"/v1/keys/{new['id']}"))
        shaped("Balance", await visit.ask("GET", "/v1/balance"))
        shaped("WebhookSecret", await visit.ask("GET", "/v1/webhooks/secret"))
