"""The endpoints of the interface: status and schema of each response."""

import base64
from urllib.parse import urlsplit

import pytest

from tests.api.http_calls import checked_json, form, served_api
from tests.fake_providers.scripted import mask, png
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


async def test_image_generations(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        response = await api.image(n=2)
        made = checked_json("ImageResult", response)
        assert made["id"] == response.headers["x-request-id"]
        assert (made["size"], len(made["data"])) == ("64x64", 2)
        parts = urlsplit(made["data"][0]["url"])
        assert parts.netloc == "test"
        file = await api.served.call("GET", f"{parts.path}?{parts.query}")
        assert (file.status, file.headers["content-type"]) == (200, "image/png")
        inline = checked_json("ImageResult", await api.image(response_format="b64_json", output_format="webp"))
        assert base64.b64decode(inline["data"][0]["b64_json"])[8:12] == b"WEBP"
        later = await api.call("GET", f"/compat/v1/images/{made['id']}")
        assert checked_json("ImageStatus", later)["id"] == made["id"]


async def test_image_edits(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        body, headers = form(
            ("image", png(64, 64), "a.png"),
            ("mask", mask(64, 64), "m.png"),
            ("model", b"edit-1", None),
            ("prompt", b"a hat", None),
            ("size", b"64x64", None),
        )
        checked_json("ImageResult", await api.call("POST", "/compat/v1/images/edits", body, headers=headers))
        uri = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
        fields = {"image": uri, "model": "edit-1", "prompt": "a hat", "size": "64x64"}
        checked_json("ImageResult", await api.call("POST", "/compat/v1/images/edits", fields))


async def test_videos_from_creation_to_a_late_cancellation(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        response = await api.video()
        created = checked_json("VideoCreated", response, 202)
        assert created["status"] == "queued"
        assert created["id"] == response.headers["x-request-id"]
        path = f"/compat/v1/videos/{created['id']}"
        waiting = await api.call("GET", path)
        assert checked_json("Video", waiting)["output"] is None
        assert "openai-poll-after-ms" in waiting.headers
        await api.running.wait_for_request(created["id"])
        done = checked_json("Video", await api.call("GET", path))
        assert (done["status"], done["output"]["content_type"]) == ("completed", "video/mp4")
        content = await api.call("GET", f"{path}/content")
        assert (content.status, len(content.body)) == (200, done["output"]["size_bytes"])
        assert (
            checked_json("VideoList", await api.call("GET", "/compat/v1/videos?limit=1"))["first_id"] == created["id"]
        )
        gone = await api.call("DELETE", path)
        assert (gone.status, gone.body) == (204, b"")
        assert checked_json("Video", await api.call("GET", path))["status"] == "completed"


async def test_a_video_from_a_form(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        body, headers = form(
            ("model", b"video-1", None), ("prompt", b"a train", None), ("input_reference[0]", png(64, 64), "a.png")
        )
        checked_json("VideoCreated", await api.call("POST", "/compat/v1/videos", body, headers=headers), 202)


async def test_a_cancelled_video(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.states = ("queued",) * 1000
        created = checked_json("VideoCreated", await api.video(), 202)
        assert (await api.call("DELETE", f"/compat/v1/videos/{created['id']}")).status == 204
        await api.running.wait_for_request(created["id"])
        shown = checked_json("Video", await api.call("GET", f"/compat/v1/videos/{created['id']}"))
        assert (shown["status"], shown["error"]["code"]) == ("failed", "CANCELLED")


async def test_chat_completions(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        made = checked_json("ChatCompletion", await api.chat())
        assert made["choices"][0]["message"]["role"] == "assistant"
        stream = await api.chat(stream=True, stream_options={"include_usage": True})
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.body.rstrip().endswith(b"data: [DONE]")
        assert stream.headers["x-request-id"].startswith("req_")


async def test_models(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        listed = checked_json("ModelList", await api.call("GET", "/compat/v1/models?schema=true"))
        assert {"image-1", "edit-1", "video-1", "lab/chat"} <= {model["id"] for model in listed["data"]}
        assert checked_json("Model", await api.call("GET", "/compat/v1/models/lab/chat"))["id"] == "lab/chat"


@pytest.mark.parametrize("path", ["images/generations", "images/edits", "videos", "chat/completions"])
async def test_a_dry_run_generates_nothing(open_gateway: OpenGateway, path: str) -> None:
    uri = "data:image/png;base64," + base64.b64encode(png(64, 64)).decode()
    model = {"images/generations": "image-1", "images/edits": "edit-1", "videos": "video-1"}.get(path, "lab/chat")
    fields = (
        {"model": model, "prompt": "x", "image": uri} if path == "images/edits" else {"model": model, "prompt": "x"}
    )
    if path == "chat/completions":
        fields = {"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 5}  # type: ignore[dict-item]
    async with served_api(open_gateway) as api:
        before = await api.running.money()
        checked_json("Estimate", await api.call("POST", f"/compat/v1/{path}?dryRun=true", fields))
        assert await api.running.money() == before
        assert api.running.lab.submits == 0
        assert await api.running.records() == []


async def test_account(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        made = checked_json("ImageResult", await api.image())
        listed = checked_json("RequestList", await api.call("GET", "/v1/requests?summary=true"))
        assert (listed["data"][0]["id"], listed["summary"]["count"]) == (made["id"], 1)
        assert listed["summary"]["total_cost"] == listed["data"][0]["cost"] == made["metadata"]["cost"]
        record = checked_json("Request", await api.call("GET", f"/v1/requests/{made['id']}"))
        assert (record["status"], record["endpoint"]) == ("completed", "/compat/v1/images/generations")
        path = f"/v1/requests/{made['id']}/payloads"
        assert checked_json("Purged", await api.call("DELETE", path))["media_deleted"] == 1
        assert checked_json("Purged", await api.call("DELETE", path))["already_purged"] is True
        checked_json("KeyList", await api.call("GET", "/v1/keys"))
        new = checked_json("NewKey", await api.call("POST", "/v1/keys", {"name": "n"}))
        checked_json("Key", await api.call("DELETE", f"/v1/keys/{new['id']}"))
        checked_json("Balance", await api.call("GET", "/v1/balance"))
        checked_json("WebhookSecret", await api.call("GET", "/v1/webhooks/secret"))
