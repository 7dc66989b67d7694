"""Vertex AI: Google's own client against the fake provider, then the gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.providers.vertex.credentials import SCOPE, auth, sign_token
from tests.fake_providers.fal import Fal
from tests.fake_providers.scripted import KEY, mp4, png
from tests.fake_providers.server import responds, serve_in_thread
from tests.fake_providers.vertex import FILTERED, PLACE, Vertex, ended
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image, gateway_for, gateways_for

if TYPE_CHECKING:
    import google.auth.jwt as google_jwt
    import google.genai as genai
    import google.oauth2.credentials as google_credentials
else:
    google_jwt = LateImport("google.auth.jwt")
    genai = LateImport("google.genai")
    google_credentials = LateImport("google.oauth2.credentials")

MODEL = "veo-3.1-generate-001"
IMAGE = {"bytesBase64Encoded": IMAGE_URI.partition(",")[2], "mimeType": "image/png"}


def fox() -> genai.types.GenerateVideosSource:
    return genai.types.GenerateVideosSource(prompt="a fox")


# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def vertex() -> Iterator[Vertex]:
    with serve_in_thread(Vertex()) as provider:
        yield provider


def opened(provider: Vertex, token: str = KEY) -> genai.Client:
    who = google_credentials.Credentials(token)  # type: ignore[no-untyped-call]
    there = genai.types.HttpOptions(base_url=provider.url, api_version="v1")
    return genai.Client(vertexai=True, project="acme", location="us-central1", credentials=who, http_options=there)


def test_client_creates_videos(vertex: Vertex) -> None:
    image = genai.types.Image(image_bytes=png(64, 48), mime_type="image/png")
    config = genai.types.GenerateVideosConfig(
        number_of_videos=1, duration_seconds=8, aspect_ratio="9:16", resolution="1080p", negative_prompt="rain",
        generate_audio=False, seed=7, last_frame=image,
    )  # fmt: skip
    source = genai.types.GenerateVideosSource(prompt="a fox", image=image)
    with opened(vertex) as client:
        job = client.models.generate_videos(model=MODEL, source=source, config=config)
        assert not client.operations.get(job).done
        done = client.operations.get(job)
    assert done.done
    assert done.response
    assert done.response.generated_videos
    assert done.response.generated_videos[0].video
    assert done.response.generated_videos[0].video.video_bytes == mp4()
    assert vertex.received("create")[0].fields == {
        "instances": [{"prompt": "a fox", "image": IMAGE, "lastFrame": IMAGE}],
        "parameters": {
            "sampleCount": 1, "durationSeconds": 8, "aspectRatio": "9:16", "resolution": "1080p",
            "negativePrompt": "rain", "generateAudio": False, "seed": 7,
        },
    }  # fmt: skip


def test_client_sees_failures(vertex: Vertex) -> None:
    vertex.next_states.extend([(FILTERED,), (ended(13, "Internal error."),)])
    config = genai.types.GenerateVideosConfig(duration_seconds=8, resolution="720p")
    with opened(vertex) as client:
        first, second = (client.models.generate_videos(model=MODEL, source=fox(), config=config) for _ in range(2))
        filtered, failed = client.operations.get(first), client.operations.get(second)
        assert filtered.response
        assert (filtered.response.rai_media_filtered_count, filtered.response.generated_videos) == (1, None)
        assert failed.error == {"code": 13, "message": "Internal error."}
    with opened(vertex, "nobody") as client, pytest.raises(genai.errors.ClientError, match="invalid authentication"):
        client.models.generate_videos(model=MODEL, source=fox(), config=config)


# ---------------------------------------------------------------------------------------------------------- credentials


@cache
def account() -> tuple[str, bytes]:
    """The key file of a service account, and the public half."""
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = secret.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    details = {"type": "service_account", "client_email": "gateway@acme.iam.example", "private_key_id": "k1"}
    return json.dumps({**details, "private_key": pem.decode()}), public


def test_account_signs_what_googles_library_accepts() -> None:
    key, public = account()
    token = auth(key)["authorization"].removeprefix("Bearer ")
    claims: dict[str, Any] = google_jwt.decode(token, certs={"k1": public})  # type: ignore[no-untyped-call]
    assert {claims["iss"], claims["sub"]} == {"gateway@acme.iam.example"}
    assert (claims["scope"], claims["exp"] - claims["iat"]) == (SCOPE, 3600)


def test_token_outlasts_the_half_hour_that_it_is_used_in() -> None:
    now = 1_800_001_799  # the last second of a half hour
    claims = json.loads(base64.urlsafe_b64decode(sign_token(account()[0], now // 1800).split(".")[1] + "=="))
    assert claims["iat"] <= now
    assert claims["exp"] > (now // 1800 + 1) * 1800 + 1700


def test_an_access_token_is_used_as_it_is() -> None:
    assert auth("ya29.token") == {"authorization": "Bearer ya29.token"}


# ---------------------------------------------------------------------------------------------------------- the gateway


@pytest.mark.parametrize(
    ("model", "fields", "expected", "cost"),
    [
        ("veo-3.1", {"seconds": 5}, {"durationSeconds": 6, "aspectRatio": "16:9", "resolution": "720p"}, "2.4"),
        (
            "veo-3.1-fast",
            {"seconds": 8, "size": "1080x1920", "generate_audio": False, "personGeneration": "allow_adult"},
            {
                "durationSeconds": 8, "aspectRatio": "9:16", "resolution": "1080p", "generateAudio": False,
                "personGeneration": "allow_adult",
            },
            "0.8",
        ),
        (
            "veo-3.1",
            {"seconds": 4, "generate_audio": False},
            {"durationSeconds": 4, "aspectRatio": "16:9", "resolution": "720p", "generateAudio": False},
            "0.8",
        ),
        (
            "veo-3.1-lite",
            {"seconds": 4, "generate_audio": False},
            {"durationSeconds": 4, "aspectRatio": "16:9", "resolution": "720p", "generateAudio": False},
            "0.12",
        ),
        (
            "veo-3.1",
            {"seconds": 8, "negative_prompt": "rain", "seed": 7},
            {
                "durationSeconds": 8, "aspectRatio": "16:9", "resolution": "720p", "negativePrompt": "rain", "seed": 7,
            },
            "3.2",
        ),
        ("veo-3.1-lite", {"seconds": 4}, {"durationSeconds": 4, "aspectRatio": "16:9", "resolution": "720p"}, "0.2"),
    ],
)  # fmt: skip
async def test_videos(open_gateway: OpenGateway, model: str, fields: Any, expected: dict[str, Any], cost: str) -> None:
    provider = Vertex()
    async with gateway_for(open_gateway, "vertex", provider, PLACE) as running:
        video = await create_video(running, model=model, input_reference=[{"image_url": IMAGE_URI}] * 2, **fields)
        assert (video["status"], video["output"]["size_bytes"]) == ("completed", len(mp4()))
        assert str(video["metadata"]["cost"]) == cost
    received = provider.received("create")[0].fields
    assert received == {
        "instances": [{"prompt": "a train", "image": IMAGE, "lastFrame": IMAGE}],
        "parameters": {**expected, "sampleCount": 1},
    }


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (FILTERED, "CONTENT_POLICY_VIOLATION"),
        (ended(3, "This prompt contains words that violate Vertex AI's usage guidelines."), "CONTENT_POLICY_VIOLATION"),
        (ended(13, "Internal error."), "ALL_PROVIDERS_EXHAUSTED"),
        ({"response": {"videos": []}}, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_failures(open_gateway: OpenGateway, fate: Any, code: str) -> None:
    provider = Vertex()
    provider.next_states.append(("waiting", fate))
    async with gateway_for(open_gateway, "vertex", provider, PLACE) as running:
        video = await create_video(running, model="veo-3.1", seconds=8)
        assert (video["status"], video["error"]["code"]) == ("failed", code)
        assert await running.money() == (10_000_000_000, 0)


async def test_callers_cannot_have_videos_stored_elsewhere(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "vertex", Vertex(), PLACE) as running:
        for extra in ("storageUri", "sampleCount", "pubsubTopic", "parameters", "instances"):
            with pytest.raises(Exception, match=extra):
                await create_video(running, model="veo-3.1", seconds=8, **{extra: "gs://elsewhere"})


async def test_videos_that_take_longer_to_be_as_large_are_refused(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "vertex", Vertex(), PLACE) as running:
        video = await create_video(running, model="veo-3.1", seconds=4, size="1920x1080")
        assert video["status"] == "failed"
        assert "Unsupported output video duration for this resolution." in video["error"]["message"]


async def test_takes_over_where_others_of_veo_fail(open_gateway: OpenGateway) -> None:
    google, fal = Vertex(), Fal()
    fal.always("submit", responds({"detail": "Too many requests"}, 429))
    async with gateways_for(open_gateway, {"vertex": (google, PLACE), "fal": (fal, "")}) as running:
        video = await create_video(running, model="veo-3.1", seconds=8)
        assert (video["status"], video["metadata"]["executed_model"]) == ("completed", f"vertex/{MODEL}")
    assert fal.received("submit")


# --------------------------------------------------------------------------------------------------------------- images


async def test_gemini_images(open_gateway: OpenGateway) -> None:
    provider = Vertex()
    async with gateway_for(open_gateway, "vertex", provider, PLACE) as running:
        made = await create_image(running, model="nano-banana-2", size="1792x1024", seed=7)
        edited = await edit_image(running, model="nano-banana", image=[IMAGE_URI, IMAGE_URI], size="1:1")
        assert [str(record["cost"]) for record in (made, edited)] == ["0.067835", "0.0342828"]
    sent = provider.received("generate")
    assert [request.path.rpartition("/")[2] for request in sent] == [
        "gemini-3.1-flash-image:generateContent",
        "gemini-2.5-flash-image:generateContent",
    ]
    assert sent[0].fields["generationConfig"]["imageConfig"] == {"aspectRatio": "16:9", "imageSize": "1K"}
    assert [list(part) for part in sent[1].fields["contents"][0]["parts"]] == [["inlineData"], ["inlineData"], ["text"]]


def test_client_creates_images(vertex: Vertex) -> None:
    config = genai.types.GenerateContentConfig(
        response_modalities=["IMAGE"],
        image_config=genai.types.ImageConfig(aspect_ratio="16:9", image_size="1K"),
        seed=7,
    )
    with opened(vertex) as client:
        made = client.models.generate_content(model="gemini-3.1-flash-image", contents="a fox", config=config)
    assert made.parts
    assert [part.inline_data is not None for part in made.parts] == [True, True]
    assert vertex.received("generate")[0].path.endswith("/gemini-3.1-flash-image:generateContent")
