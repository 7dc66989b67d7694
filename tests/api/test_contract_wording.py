"""What the interface promises about less usual calls: replay on chat, odd queries and inputs, sloppy servers."""

import base64
import io
import json
from typing import Any

from PIL import Image

from tests.api.http_calls import ServedApi, checked_json, form, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import mask, png
from tests.gateway import OpenGateway, sqlite_only

PNG = png(64, 64)
DATA_URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
MASK_URI = f"data:image/png;base64,{base64.b64encode(mask(64, 64)).decode()}"
EDITS = "/compat/v1/images/edits"
CHATS = "/compat/v1/chat/completions"
FINISH_REASONS = {"stop", "length", "tool_calls", "content_filter"}


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


# --------------------------------------------------------------------------------------------------------- sloppy chats

MESSAGE = {"role": "assistant", "content": "hi"}
TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
SLOPPY: tuple[tuple[dict[str, Any], str], ...] = (
    ({"choices": [{"message": MESSAGE}]}, "stop"),
    ({"object": "text", "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "eos"}]}, "stop"),
    ({"id": 7, "created": 1.5, "choices": [{"message": MESSAGE, "finish_reason": "max_tokens"}]}, "length"),
    ({"choices": [{"message": CALLING, "finish_reason": "whatever"}], "usage": None}, "tool_calls"),
    ({"choices": [{"message": {"content": "hi"}, "finish_reason": ""}], "usage": {"prompt_tokens": 3}}, "stop"),
)


@sqlite_only
async def test_the_chat_of_a_sloppy_server_has_the_documented_shape(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for body, reason in SLOPPY:
            api.running.lab.chats.next(faults.raw(json.dumps(body).encode()))
            shown = checked_json("ChatCompletion", await api.chat())
            assert shown["choices"][0]["finish_reason"] == reason, body
            assert shown["choices"][0]["message"]["role"] == "assistant"
            assert shown["model"]
            usage = shown["usage"]
            assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


@sqlite_only
async def test_the_stream_of_a_sloppy_server_has_the_documented_shape(open_gateway: OpenGateway) -> None:
    lines = [
        {"choices": [{"delta": {"role": "assistant", "content": "hi"}}]},
        {"choices": [{"delta": {"content": " you"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "eos_token"}]},
    ]
    body = b"".join(b"data: " + json.dumps(line).encode() + b"\n\n" for line in lines) + b"data: [DONE]\n\n"
    async with served_api(open_gateway) as api:
        api.running.lab.chats.next(faults.raw(body, "text/event-stream"))
        called = await api.chat(stream=True, stream_options={"include_usage": True})
        chunks = events(called.body)
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert len({chunk["id"] for chunk in chunks}) == 1
        assert all(chunk["created"] and chunk["model"] for chunk in chunks)
        assert [choice["index"] for chunk in chunks for choice in chunk["choices"]] == [0, 0, 0]
        reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
        assert reasons == [None, None, "stop"]
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["completion_tokens"] > 0
        assert called.body.endswith(b"data: [DONE]\n\n")


# --------------------------------------------------------------------------------------------------------------- replay


@sqlite_only
async def test_no_mode_of_replay_is_silently_live_on_chat(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        lab = api.running.lab
        ask = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}

        async def chat(mode: str | None, key: str | None = None, **more: Any) -> Any:
            headers = {"X-Service-Replay": mode} if mode else {}
            return await api.call("POST", CHATS, {**ask, **more}, headers=headers, key=key)

        for mode in ("mock", "replay-or-mock"):
            mocked = await chat(mode)
            assert (mocked.status, mocked.headers["x-service-replay-status"]) == (200, "mocked")
            assert checked_json("ChatCompletion", mocked)["choices"][0]["message"]["content"] == "hello"
            assert (await api.call("GET", f"/v1/requests/{mocked.headers['x-request-id']}")).json["cost"] == 0
            assert b"[DONE]" in (await chat(mode, stream=True, reasoning_effort="low")).body
        assert (await chat("replay-or-error")).code == "RECORDING_NOT_FOUND"
        assert len(lab.chats) == 0
        assert (await chat("replay-or-live")).headers["x-service-replay-status"] == "live"
        assert (await chat("off")).status == 200
        assert (await chat("nonsense")).code == "INVALID_REQUEST"
        assert len(lab.chats) == 2
        assert (await chat("record")).headers["x-service-replay-status"] == "recorded"
        assert (await chat("replay-or-record")).headers["x-service-replay-status"] == "replayed"
        assert len(lab.chats) == 3
        key = (await api.running.gateway.keys.create_key(api.running.caller.org_id, replay_mode="mock")).key
        assert (await chat(None, key=key)).headers["x-service-replay-status"] == "mocked"
        assert (await chat("off", key=key)).status == 200
        assert len(lab.chats) == 4


@sqlite_only
async def test_a_misspelt_field_of_a_specific_match_is_refused(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        body = {"model": "image-1", "prompt": "x", "size": "64x64", "seed": 7}
        headers = {"X-Service-Replay": "replay-or-live", "X-Service-Replay-Match": "specific"}
        path = "/compat/v1/images/generations"

        async def call(fields: str) -> Any:
            return await api.call("POST", path, body, headers={**headers, "X-Service-Replay-Fields": fields})

        refused = await call("promt")
        assert (refused.status, refused.json["error"]["param"]) == (400, "X-Service-Replay-Fields")
        assert "`promt`" in refused.json["error"]["message"]
        for fields in ("prompt", "prompt, seed", "model", "image", "size"):
            assert (await call(fields)).status == 200, fields


@sqlite_only
async def test_an_input_matches_as_a_file_and_as_a_data_uri(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        fields = {"model": "edit-1", "prompt": "x", "size": "64x64"}
        parts = [(name, value.encode(), None) for name, value in fields.items()]
        body, headers = form(*parts, ("image", PNG, "a.png"))
        recorded = await api.call("POST", EDITS, body, headers={**headers, "X-Service-Replay": "record"})
        assert recorded.status == 200
        replayed = await api.call(
            "POST", EDITS, {**fields, "image": DATA_URI}, headers={"X-Service-Replay": "replay-or-error"}
        )
        assert replayed.headers.get("x-service-replay-status") == "replayed"


# -------------------------------------------------------------------------------------------------------------- queries


@sqlite_only
async def test_unknown_query_parameters_are_refused_by_name_and_empty_ones_count_as_absent(
    open_gateway: OpenGateway,
) -> None:
    async with served_api(open_gateway) as api:
        video = {"model": "video-1", "prompt": "x"}
        for method, path, name, body in (
            ("POST", "/compat/v1/videos?dryrun=true", "dryrun", video),
            ("POST", "/compat/v1/videos?dry_run=true", "dry_run", video),
            ("GET", "/v1/requests?modle=x", "modle", None),
            ("GET", "/v1/keys?state=active", "state", None),
            ("GET", "/compat/v1/videos?before=x", "before", None),
        ):
            refused = await api.call(method, path, body)
            assert (refused.status, refused.code) == (400, "INVALID_REQUEST"), path
            assert refused.json["error"]["param"] == name
        assert "`dryRun`" in (await api.call("POST", "/compat/v1/videos?dryrun=true", video)).json["error"]["message"]
        assert len(api.running.lab.videos) == 0
        for path in ("/v1/requests?status=&starting_after=", "/v1/keys?status=&limit=", "/compat/v1/videos?after="):
            assert (await api.call("GET", path)).status == 200, path


@sqlite_only
async def test_paths_that_people_try_first_name_the_right_one(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for method, path, said in (
            ("GET", "/v1/models", "/compat/v1"),
            ("POST", "/v1/chat/completions", "/compat/v1"),
            ("POST", "/v1/images/generations", "/compat/v1"),
            ("POST", "/v1/responses", "/compat/v1"),
            ("POST", "/chat/completions", "/compat/v1"),
            ("GET", "/compat/v1/models/", "slash"),
            ("GET", "/v1/requests/", "slash"),
            ("POST", "/compat/v1/embeddings", "embeddings"),
        ):
            missing = await api.call(method, path, {} if method == "POST" else None)
            assert (missing.status, missing.code) == (404, "NOT_FOUND"), path
            assert said in missing.json["error"]["message"], (path, missing.json)
        body, headers = form(("image", b"x" * 100_000, "a.png"))
        variations = await api.call("POST", "/compat/v1/images/variations", body, headers=headers)
        assert (variations.status, variations.code) == (404, "NOT_FOUND")


# --------------------------------------------------------------------------------------------------------------- inputs


async def edit(api: ServedApi, **more: Any) -> Any:
    return await api.call("POST", EDITS, {"model": "edit-1", "prompt": "x", "size": "64x64", **more})


@sqlite_only
async def test_openais_own_json_form_of_edits_is_accepted(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        assert (await edit(api, images=[{"image_url": DATA_URI}])).status == 200
        assert (await edit(api, images=[{"image_url": DATA_URI}], mask={"image_url": MASK_URI})).status == 200
        by_id = await edit(api, images=[{"file_id": "file-1"}])
        assert (by_id.status, "file_id" in by_id.json["error"]["message"]) == (400, True)


@sqlite_only
async def test_an_empty_file_part_counts_as_absent(open_gateway: OpenGateway) -> None:
    """Browsers send one for a file input in which nothing was chosen."""
    async with served_api(open_gateway) as api:
        fields = [("model", b"edit-1", None), ("prompt", b"x", None), ("size", b"64x64", None)]
        for empty in (("mask", b"", ""), ("mask", b"", None)):
            body, headers = form(*fields, ("image", PNG, "a.png"), empty)
            assert (await api.call("POST", EDITS, body, headers=headers)).status == 200, empty
        body, headers = form(*fields, ("image", b"", ""))
        missing = await api.call("POST", EDITS, body, headers=headers)
        assert "`image` is required" in missing.json["error"]["message"]


@sqlite_only
async def test_messages_about_inputs_say_what_is_wrong(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, egress_allow_hosts=("127.0.0.1",), image_bytes=60_000) as api:
        lab = api.running.lab
        lab.files.next(faults.file(b"x" * 70_000, "image/png"), faults.missing, faults.file(b"<svg/>", "image/svg+xml"))
        url = f"http://127.0.0.1:{lab.port}/files/a.png"
        for source, said in (
            (base64.b64encode(PNG).decode(), "data URI"),
            ("http://plain.example/a.png", "https://"),
            (url, "60000 bytes"),
            (url, "HTTP 404"),
            (url, "not a usable image"),
        ):
            refused = await edit(api, image=source)
            assert refused.status == 400
            assert said in refused.json["error"]["message"], (said, refused.json)


@sqlite_only
async def test_webhook_urls_may_be_in_capitals_and_messages_say_why_one_is_refused(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        assert (await api.video(webhook_url="HTTPS://Receiver.example/hook")).status == 202
        refused = await api.video(webhook_url="https://receiver.example/hook#part")
        assert "fragment" in refused.json["error"]["message"]


# -------------------------------------------------------------------------------------------------------------- results


@sqlite_only
async def test_a_bmp_from_a_provider_is_converted(open_gateway: OpenGateway) -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(file, "BMP")
    data = [{"b64_json": base64.b64encode(file.getvalue()).decode()}]
    async with served_api(open_gateway) as api:
        api.running.lab.images.next(faults.altered(data=data))
        result = checked_json("ImageResult", await api.image())
        assert (result["output_format"], result["size"]) == ("png", "64x64")


@sqlite_only
async def test_an_image_says_when_its_url_expires(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, url_seconds=600) as api:
        result = checked_json("ImageResult", await api.image())
        assert result["metadata"]["url_expires_at"] == api.running.clock.now_ms() // 1000 + 600
        encoded = checked_json("ImageResult", await api.image(response_format="b64_json"))
        assert "url_expires_at" not in encoded["metadata"]


@sqlite_only
async def test_every_request_record_has_the_size_of_its_response(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for called in (await api.image(), await api.video(), await api.chat(), await api.image(prompt=7)):
            path = f"/v1/requests/{called.headers['x-request-id']}"
            assert (await api.call("GET", path)).json["response_size_bytes"] == len(called.body)


@sqlite_only
async def test_null_is_the_same_as_no_field_also_for_fields_that_a_model_does_not_have(
    open_gateway: OpenGateway,
) -> None:
    """Clients write null for what they leave out; the built-in models refuse fields that they do not know."""
    async with served_api(open_gateway, disabled_providers=()) as api:
        unknown = dict.fromkeys(("service_tier", "background", "moderation", "made_up"))
        assert (await api.image(model="atelier/sketch", **unknown)).status == 200
        assert (await api.video(model="atelier/clip", seconds=1, size="64x64", **unknown)).status == 202
        assert (await api.chat(model="atelier/echo", **unknown)).status == 200
        assert (await api.image(**unknown)).status == 200
        assert api.running.lab.images.received[-1].fields.keys().isdisjoint(unknown)


@sqlite_only
async def test_a_mask_that_marks_nothing_is_refused_before_a_provider_is_called(open_gateway: OpenGateway) -> None:
    file = io.BytesIO()
    Image.new("RGBA", (64, 64), (9, 9, 9, 255)).save(file, "PNG")
    opaque = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    async with served_api(open_gateway, disabled_providers=()) as api:
        for model in ("edit-1", "atelier/retouch"):
            refused = await edit(api, model=model, image=DATA_URI, mask=opaque)
            assert (refused.status, refused.json["error"]["param"]) == (400, "mask"), refused.json
            record = await api.call("GET", f"/v1/requests/{refused.headers['x-request-id']}")
            assert record.json["status"] == "rejected"


@sqlite_only
async def test_a_cursor_that_leads_nowhere_is_named(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for path, name in (
            ("/v1/requests", "starting_after"),
            ("/v1/requests", "ending_before"),
            ("/v1/keys", "starting_after"),
            ("/v1/recordings", "ending_before"),
            ("/compat/v1/videos", "after"),
        ):
            missing = await api.call("GET", f"{path}?{name}=nope")
            assert (missing.status, missing.json["error"]["param"]) == (404, name), path
