"""Recordings and simulations against Comfy's OpenAPI document of the same APIs, for providers without a client library.

Errors in that document are those of Comfy's proxy, so only what succeeds is compared.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fake_providers.bfl import BlackForestLabs
from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.kling import Kling
from tests.fake_providers.ltx import Ltx
from tests.fake_providers.minimax import MiniMax
from tests.fake_providers.recraft import Recraft
from tests.fake_providers.server import FakeProvider
from tests.fake_providers.vidu import Vidu
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway
from tests.providers import descriptions, json_schemas
from tests.providers.calls import create_image, create_video, gateway_for
from tests.providers.recordings import recordings

COMPARED = ("bfl", "ideogram", "kling", "ltx", "minimax", "recraft", "vidu", "xai")
# Where the document is known to be narrower than the provider's replies: an objectionable image has no URL, a video may
# fail, a question that comes too often is answered with status 200 and no task, and an upscaler answers with one image.
NARROWER = (
    ("ideogram", "data/0/url: "),
    ("xai", "status: "),
    ("minimax", "is a required property"),
    ("recraft", '"data" is a required property'),
)


@cache
def reply_validator(holder: str) -> descriptions.Validator | None:
    """The validator for a response of the document, given as JSON: building one takes longer than most comparisons."""
    schema = json_schemas.opened(descriptions.content_schema(json.loads(holder)))
    return descriptions.Validator(schema) if schema else None


def breaches(slug: str, holder: Any, reply: Any) -> Iterator[str]:
    """Where a reply does not fit the document, except where that is known to be narrower."""
    validator = reply_validator(json.dumps(holder))
    for breach, _ in descriptions.breaches(slug, validator, reply) if validator else ():
        if not any(of == slug and text in breach for of, text in NARROWER):
            yield breach


# ------------------------------------------------------------------------------------------------------------ exchanges


def test_exchanges_fit_the_document() -> None:
    compared = dict.fromkeys(COMPARED, 0)
    found: list[str] = []
    for recording in (recording for recording in recordings() if recording.slug in COMPARED):
        for exchange in recording.content["exchanges"]:
            sent, reply = exchange["sent"], exchange["reply"]
            known = descriptions.comfy_operation(recording.slug, sent["method"], urlsplit(sent["url"]).path)
            status = str(reply.get("status", 200))
            if known and "json" in reply and status < "300" and status in known["responses"]:
                compared[recording.slug] += 1
                details = breaches(recording.slug, known["responses"][status], reply["json"])
                found += (f"{recording}: {detail}" for detail in details)
    assert min(compared.values()) >= 2, compared
    assert not found, "\n" + "\n".join(found)


# ----------------------------------------------------------------------------------------------------------- simulators

H3 = ("queued", "running", "succeeded")  # MiniMax's second API has words of its own
# A provider and its simulator, where that is mounted, and models that between them make it say what it can.
SIMULATORS: tuple[tuple[str, Callable[[], FakeProvider], str, tuple[str, ...]], ...] = (
    ("bfl", BlackForestLabs, "", ("flux-2-pro", "flux-3-video")),
    ("kling", Kling, "", ("kling-3",)),
    ("ltx", Ltx, "", ("ltx-2.5-fast",)),
    ("minimax", MiniMax, "", ("hailuo-2.3",)),
    ("minimax", lambda: MiniMax(H3), "", ("minimax/h3",)),
    ("recraft", Recraft, "/v1", ("recraft-v3",)),
    ("vidu", Vidu, "/ent/v2", ("vidu-q3",)),
    ("xai", XAI, "/v1", ("grok-imagine-image", "grok-imagine-video")),
)


def record_responses(fake: FakeProvider) -> list[tuple[str, str, Any]]:
    """A list that gets all JSON responses from now on, each with the method and the path of its request."""
    responses: list[tuple[str, str, Any]] = []
    find_route = fake._find_route

    def find_and_record(request: ReceivedRequest) -> tuple[str, Mapping[str, str], Callable[[Exchange], FakeResponse]]:
        name, params, make = find_route(request)

        def make_and_record(exchange: Exchange) -> FakeResponse:
            response = make(exchange)
            if response.json is not None:
                responses.append((request.method, request.path, response.json))
            return response

        return name, params, make_and_record

    fake._find_route = find_and_record  # type: ignore[method-assign]
    return responses


@pytest.mark.parametrize(("slug", "simulated", "path", "models"), SIMULATORS)
async def test_simulators_fit_the_description(
    open_gateway: OpenGateway, slug: str, simulated: Callable[[], FakeProvider], path: str, models: tuple[str, ...]
) -> None:
    provider = simulated()
    responses = record_responses(provider)
    found: list[str] = []
    compared = 0
    async with gateway_for(open_gateway, slug, provider, path) as running:
        for model in models:
            candidate = running.gateway.catalog.find_known(model, ("image", "video")).candidates[0]
            made = await (create_video if candidate.model.op.task == "video" else create_image)(running, model=model)
            assert made["status"] == "completed", made
    for method, path_asked, received in responses:
        if known := descriptions.comfy_operation(slug, method, path_asked):
            shape = next(shape for status, shape in known["responses"].items() if status.startswith("2"))
            found += breaches(slug, shape, received)
            compared += 1
    assert compared
    assert not found, "\n" + "\n".join(found)


async def test_simulators_refuse_what_the_provider_would_refuse(open_gateway: OpenGateway) -> None:
    provider = Kling()
    async with gateway_for(open_gateway, "kling", provider) as running:
        made = await create_video(running, model="kling-3", colour="red")
    assert made["status"] == "failed"
    assert "colour" in str(made["error"]), made
    assert not provider.jobs
