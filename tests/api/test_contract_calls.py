"""What the interface promises about calls: whose fault an error is, arguments that change nothing, repeats."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.errors import NotFound
from penstock.models.catalog import Catalog
from penstock.providers import discover
from penstock.settings import Settings
from tests.api.http_calls import ServedApi, checked_json, form, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import Installation, OpenGateway, sqlite_only

DATA_URI = f"data:image/png;base64,{base64.b64encode(png(64, 64)).decode()}"
MESSAGES = [{"role": "user", "content": "hello"}]
ECHO = {"model": "atelier/echo", "messages": MESSAGES}


async def record_of(api: ServedApi, request_id: str) -> dict[str, Any]:
    record: dict[str, Any] = (await api.call("GET", f"/v1/requests/{request_id}")).json
    return record


# ------------------------------------------------------------------------------------------------------ provider errors

SAID = (
    (400, "This model's maximum context length is 8192 tokens.", 400, "INVALID_REQUEST", "false"),
    (404, "The model `x` does not exist.", 404, "MODEL_NOT_FOUND", "false"),
    (422, "size: not a valid size.", 422, "UNPROCESSABLE_REQUEST", "false"),
    (429, "Slow down.", 429, "RATE_LIMITED", "true"),
    (401, "Wrong key.", 502, "ALL_PROVIDERS_EXHAUSTED", "false"),
    (500, "It fell over.", 502, "ALL_PROVIDERS_EXHAUSTED", "false"),
)


@sqlite_only
async def test_what_the_only_provider_says_about_a_request_is_said_to_the_caller(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        wrong = []
        for status, message, shown_status, code, retry in SAID:
            api.running.lab.images.next(faults.error(status, message))
            api.running.lab.chats.next(*[faults.error(status, message)] * 2)
            forced = code.replace("ALL_PROVIDERS_EXHAUSTED", "UPSTREAM_ERROR")
            for call, expected in (
                (await api.image(), code),
                (await api.chat(), forced),
                (await api.chat(stream=True), forced),
            ):
                record = await record_of(api, call.headers["x-request-id"])
                found = (call.status, call.code, call.headers["x-should-retry"], record["status"])
                if found != (shown_status, expected, retry, "upstream_failure"):
                    wrong.append((status, found))
        assert wrong == []


@sqlite_only
async def test_with_two_providers_the_second_is_asked_and_the_error_is_that_of_all(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, annex=True) as api:
        api.running.lab.images.next(faults.rejected)
        assert (await api.image()).status == 200
        api.running.lab.images.next(faults.rejected)
        api.running.annex.images.next(faults.rejected)
        assert (await api.image()).code == "ALL_PROVIDERS_EXHAUSTED"


@sqlite_only
async def test_too_large_an_upscale_is_the_callers_mistake(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, disabled_providers=()) as api:
        large = base64.b64encode(png(1200, 1200)).decode()
        body = {"model": "atelier/enlarge", "scale_factor": 8, "image": f"data:image/png;base64,{large}"}
        called = await api.call("POST", "/compat/v1/images/edits", body)
        assert (called.status, called.code) == (400, "INVALID_REQUEST")


# --------------------------------------------------------------------------------------------- arguments without effect


@sqlite_only
async def test_arguments_that_change_nothing_are_accepted(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, disabled_providers=()) as api:
        chats: list[dict[str, Any]] = [
            {"service_tier": "auto"},
            {"service_tier": "default"},
            {"stop": []},
            {"modalities": ["text"]},
            {"prediction": {"type": "content", "content": "x"}},
            {"functions": []},
            {"n": 1.0},
            {"stream": False},
        ]
        images: list[dict[str, Any]] = [
            {"stream": False},
            {"partial_images": 0},
            {"n": 1.0},
            {"service_tier": "auto"},
            {"user": None},
        ]
        wrong = [more for more in chats if (await api.chat(**more)).status != 200]
        wrong += [more for more in chats if (await api.chat(model="atelier/echo", **more)).status != 200]
        wrong += [more for more in images if (await api.image(**more)).status != 200]
        video = {"model": "video-1", "prompt": "x", "negative_prompt": "", "n": 2.0}
        wrong += [] if (await api.call("POST", "/compat/v1/videos?dryRun=true", video)).status == 200 else [video]
        assert wrong == []
        sent = [*api.running.lab.chats.received, *api.running.lab.images.received]
        not_sent = ("service_tier", "partial_images", "modalities", "prediction", "functions")
        assert [name for request in sent for name in not_sent if name in request.fields] == []
        assert (await api.chat(service_tier="priority")).code == "INVALID_REQUEST"
        assert (await api.chat(modalities=["text", "audio"])).code == "INVALID_REQUEST"
        assert (await api.chat(n=1.5)).code == "INVALID_REQUEST"


@sqlite_only
async def test_fields_that_do_not_change_the_price_of_an_own_server_are_passed_on(open_gateway: OpenGateway) -> None:
    """An image is priced by the image, a video by the second: its size and sound cost nothing more."""
    async with served_api(open_gateway) as api:
        assert (await api.image(width=64, fps=3, generate_audio=True)).status == 200
        assert api.running.lab.images.received[0].fields["width"] == 64
        video = {"model": "video-1", "prompt": "x"}
        path = "/compat/v1/videos?dryRun=true"
        for name, value in {"fps": 1, "generate_audio": True, "height": 1}.items():
            assert (await api.call("POST", path, {**video, name: value})).status == 200, name
        for name in ("num_frames", "duration_seconds", "num_videos", "webhook"):
            assert (await api.call("POST", path, {**video, name: 1})).code == "INVALID_REQUEST", name
        assert (await api.image(num_images=4)).code == "INVALID_REQUEST"


@sqlite_only
async def test_the_built_in_chat_model_knows_its_response_formats(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, disabled_providers=()) as api:
        refused = await api.chat(model="atelier/echo", response_format={"type": "xml"})
        assert (refused.status, refused.json["error"]["param"]) == (400, "response_format")
        assert "`json_object`" in refused.json["error"]["message"]
        several = (await api.chat(model="atelier/echo", n=2)).json
        assert [choice["index"] for choice in several["choices"]] == [0, 1]
        again = (await api.chat(model="atelier/echo", n=2)).json
        assert again["id"] != several["id"]


# -------------------------------------------------------------------------------------------------------------- repeats


@sqlite_only
async def test_a_repeated_idempotency_key_returns_the_video_whatever_the_body_says(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        first = await api.video(idempotency_key="q1", seconds=4)
        bodies: tuple[tuple[dict[str, Any], bool], ...] = (
            ({"seconds": "soon"}, True),
            ({"prompt": None, "model": 7}, True),
            ({"seconds": "4"}, False),
            ({"seconds": 4.0, "n": 1}, False),
            ({"seconds": 5}, True),
        )
        for body, differs in bodies:
            again = await api.video(**{"seconds": 4, "idempotency_key": "q1", **body})
            assert (again.status, again.json["id"]) == (202, first.json["id"]), body
            assert again.headers["x-request-id"] == first.json["id"]
            assert again.headers["x-service-request-id"] == first.json["id"]
            assert ("idempotency-mismatch" in again.headers) is differs, body
        part = ("prompt", b"a train", None), ("model", b"video-1", None), ("seconds", b"4", None)
        body_bytes, headers = form(*part, ("idempotency_key", b"q1", None))
        as_form = await api.call("POST", "/compat/v1/videos", body_bytes, headers=headers)
        assert (as_form.json["id"], as_form.headers.get("idempotency-mismatch")) == (first.json["id"], None)


# --------------------------------------------------------------------------------------------------------------- models


def message_of(model: str, tasks: tuple[str, ...], environ: dict[str, str]) -> str:
    with pytest.raises(NotFound) as caught:
        Catalog(discover(), Settings(), environ).find(model, tasks)
    return caught.value.message


def test_a_model_without_its_credential_says_which_variables_it_needs() -> None:
    message = message_of("flux-dev", ("image",), {})
    assert "does not exist" not in message
    assert all(name in message for name in ("FAL_KEY", "REPLICATE_API_TOKEN"))
    assert "ANTHROPIC_API_KEY" in message_of("anthropic/claude-opus-5", ("chat",), {})
    assert "OPENROUTER_API_KEY" in message_of("somebody/some-model", ("chat",), {})
    assert "OPENAI_API_KEY" in message_of("dall-e-3", ("image",), {})
    assert "use `gpt-image" in message_of("dall-e-3", ("image",), {"OPENAI_API_KEY": "x"})


def test_a_suggestion_is_a_model_of_the_same_kind() -> None:
    assert "atelier/sketch" in message_of("atelier/skech", ("image",), {})
    assert "`atelier/echo`" in message_of("atelier/clip1", ("chat",), {"OPENROUTER_API_KEY": ""})
    assert "`atelier/clip`" not in message_of("atelier/clop", ("chat",), {})


# --------------------------------------------------------------------------------------------------------------- limits


@sqlite_only
async def test_a_spent_daily_limit_tells_when_it_ends_and_not_to_retry(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        key = (await api.running.gateway.keys.create_key(api.running.caller.org_id, usd_per_day="0.000000001")).key
        called = await api.call("POST", "/compat/v1/chat/completions", {**ECHO, "model": "lab/chat"}, key=key)
        assert (called.status, called.code) == (429, "RATE_LIMITED")
        assert called.headers["x-should-retry"] == "false"
        now = api.running.clock.now_ms() // 1000
        reset = datetime.fromtimestamp(now - now % 86_400 + 86_400, UTC)
        assert called.headers["retry-after"] == str(86_400 - now % 86_400)
        assert f"{reset:%Y-%m-%dT%H:%M:%SZ}" in called.json["error"]["message"]


@sqlite_only
async def test_a_cheap_provider_is_used_when_the_balance_does_not_cover_a_dear_one(
    open_gateway: OpenGateway, installation: Installation
) -> None:
    """The estimate is the first provider's; what the second may cost more does not refuse the call."""
    async with served_api(open_gateway, starting_credit_usd="0.05") as api:
        dear = api.running.annex.settings(priority=1)
        dear["models"][0]["price"]["usd"] = "0.08"
        both = {"lab": api.running.lab.settings(), "annex": dear}
        async with served_api(open_gateway, labs=(api.running.lab, api.running.annex), providers=both) as two:
            result = checked_json("ImageResult", await two.image())
            assert result["metadata"]["provider"] == "lab"
            assert (await two.image()).code == "INSUFFICIENT_BALANCE"
