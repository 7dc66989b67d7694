"""Images of chat calls: which URLs providers get, and which the gateway fetches for them."""

import base64
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.chat.endpoint import complete_chat
from penstock.chat.images import inline_images
from penstock.chat.request import ChatRequest, read_chat_request
from penstock.errors import InvalidRequest
from penstock.models.routing import Route
from penstock.providers import openai, vllm
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Provider
from penstock.upstream.candidate import Candidate
from penstock.values import InputFile, OrgId
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.net.forbidden_urls import FORBIDDEN

LOOPBACK: dict[str, Any] = {"egress_allow_cidrs": ("127.0.0.0/8",)}
PUBLIC = "https://images.example/a.png"


def body(*urls: str) -> dict[str, Any]:
    parts: list[Any] = [{"type": "text", "text": "what is this?"}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"model": "lab/chat", "messages": [{"role": "user", "content": parts}], "max_tokens": 20}


async def ask(running: RunningGateway, *urls: str, **query: str) -> None:
    await complete_chat(running.gateway, running.call(body(*urls), endpoint="/compat/v1/chat/completions", query=query))


def sent_urls(running: RunningGateway) -> list[str]:
    (received,) = running.lab.chats.received
    return [part["image_url"]["url"] for part in received.fields["messages"][0]["content"][1:]]


def image_at(running: RunningGateway, width: int = 8) -> str:
    """The URL of an image on the host of the fake provider."""
    running.lab.returns_urls = True
    return running.lab.image_object(f"{width}x8")["url"]


def uri(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def candidate(provider: Provider, base_url: str = "") -> Candidate:
    model = Model(id="x/talk", upstream="chat", op=CHAT, prices=())
    return Candidate(replace(provider, base_url=base_url or provider.base_url), model)


def chat_with(running: RunningGateway, *urls: str) -> ChatRequest:
    return read_chat_request(running.call(body(*urls)), running.gateway.settings)


@sqlite_only
async def test_no_forbidden_url_reaches_a_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        refusals: dict[str, str | None] = {}
        for url in FORBIDDEN:
            if "#" not in url and not url.startswith("data:"):
                try:
                    await ask(running, "data:image/png;base64,AAAA", url)
                    refusals[ascii(url)] = None
                except InvalidRequest as problem:
                    refusals[ascii(url)] = problem.param
        assert set(refusals.values()) == {"messages[0].content[2].image_url.url"}, refusals
        assert running.lab.submits == 0
        assert await running.money() == before


@sqlite_only
async def test_a_provider_in_the_own_network_gets_the_image_instead_of_its_url(open_gateway: OpenGateway) -> None:
    async with open_gateway(**LOOPBACK) as running:
        await ask(running, image_at(running, 8), uri(png(4, 4)), image_at(running, 16))
        assert sent_urls(running) == [uri(png(8, 8)), uri(png(4, 4)), uri(png(16, 8))]
        assert len(running.lab.files) == 2


@sqlite_only
@pytest.mark.parametrize("providers", [(vllm.PROVIDER,), (openai.PROVIDER, vllm.PROVIDER)], ids=["alone", "as another"])
async def test_a_provider_in_the_own_network_gets_no_public_url_either(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, providers: tuple[Provider, ...]
) -> None:
    """It would fetch it itself, follow redirects into the operator's network, and look the name up anew."""
    async with open_gateway() as running:
        asked = []

        async def load(role: str, source: str, param: str, *, for_org: OrgId) -> InputFile:
            asked.append(source)
            return InputFile(png(8, 8), "image/png", 8, 8)

        monkeypatch.setattr(running.gateway.media_transfer, "load_input", load)
        route = Route(tuple(candidate(provider) for provider in providers))
        chat = chat_with(running, PUBLIC)
        inlined = await inline_images(
            chat, route, running.gateway.media_transfer, running.caller.org_id, max_bytes=10**6
        )
        part = inlined.body["messages"][0]["content"][1]
        assert (asked, part["image_url"]["url"]) == ([PUBLIC], uri(png(8, 8)))


@sqlite_only
@pytest.mark.parametrize("stream", [False, True])
async def test_a_large_image_in_the_place_of_its_url_is_encoded_in_small_steps(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """The call with the URL is small; the call with the image is not."""
    async with open_gateway(**LOOPBACK) as running:
        data = bytes(3_000_000)
        sizes: list[int] = []

        async def load(role: str, source: str, param: str, *, for_org: OrgId) -> InputFile:
            return InputFile(data, "image/png", 8, 8)

        def encode(value: Any) -> bytes:
            encoded = msgspec.json.Encoder().encode(value)
            sizes.append(len(encoded))
            return encoded

        monkeypatch.setattr(running.gateway.media_transfer, "load_input", load)
        monkeypatch.setattr(msgspec.json, "encode", encode)
        call = running.call({**body(image_at(running)), "stream": stream}, endpoint="/compat/v1/chat/completions")
        response = await complete_chat(running.gateway, call)
        if response.chunks is not None:
            assert [chunk async for chunk in response.chunks]
        assert sent_urls(running) == [uri(data)]
        assert max(sizes, default=0) < 1024**2


@sqlite_only
async def test_images_are_fetched_for_the_organization_of_the_caller(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lookups and child processes are shared among organizations, so each must be counted for its own."""
    async with open_gateway(**LOOPBACK) as running:
        transfer = running.gateway.media_transfer
        load_input = transfer.load_input
        orgs = []

        async def load(role: str, source: str, param: str, *, for_org: OrgId) -> InputFile:
            orgs.append(for_org)
            return await load_input(role, source, param, for_org=for_org)

        monkeypatch.setattr(transfer, "load_input", load)
        await ask(running, image_at(running))
        assert orgs == [running.caller.org_id]


@sqlite_only
async def test_an_image_that_cannot_be_fetched_is_refused_by_its_place(open_gateway: OpenGateway) -> None:
    """A missing file, a file that is no image, and one that is too large; nothing is reserved or sent."""
    async with open_gateway(image_bytes=len(png(8, 8)), **LOOPBACK) as running:
        before = await running.money()
        found = image_at(running)
        missing = found.replace(".png", ".gone")
        large = image_at(running, 4096)
        no_image = f"{running.lab.base_url}/videos"
        for url in (missing, no_image, large):
            with pytest.raises(InvalidRequest) as caught:
                await ask(running, found, url)
            assert caught.value.param == "messages[0].content[2].image_url.url", url
        assert len(running.lab.chats) == 0
        assert await running.money() == before


@sqlite_only
async def test_a_call_with_many_urls_is_refused_before_any_is_fetched(open_gateway: OpenGateway) -> None:
    async with open_gateway(**LOOPBACK) as running:
        with pytest.raises(InvalidRequest, match="at most 16 images with a URL") as caught:
            await ask(running, *[image_at(running)] * 17)
        assert caught.value.param == "messages"
        assert len(running.lab.files) == 0


@sqlite_only
async def test_images_that_are_fetched_have_a_limit_together(open_gateway: OpenGateway) -> None:
    """The same as data URIs in a body: they are in memory before anything is reserved."""
    async with open_gateway(json_bytes=2 * len(uri(png(8, 8))), **LOOPBACK) as running:
        with pytest.raises(InvalidRequest, match="bytes together") as caught:
            await ask(running, *[image_at(running)] * 4)
        assert caught.value.param == "messages[0].content[3].image_url.url"
        assert len(running.lab.files) == 3
        await ask(running, *[image_at(running)] * 2)


@sqlite_only
async def test_an_estimate_fetches_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway(**LOOPBACK) as running:
        await ask(running, image_at(running), dryRun="true")
        assert len(running.lab.files) == 0
        assert running.lab.submits == 0


@sqlite_only
async def test_a_public_provider_gets_public_urls_only(open_gateway: OpenGateway) -> None:
    """A URL that only an exception of the operator's allows is fetched for it."""
    async with open_gateway(**LOOPBACK) as running:
        chat = chat_with(running, PUBLIC, image_at(running))
        route = Route((candidate(openai.PROVIDER),))
        inlined = await inline_images(
            chat, route, running.gateway.media_transfer, running.caller.org_id, max_bytes=10**6
        )
        parts = inlined.body["messages"][0]["content"]
        assert [part["image_url"]["url"] for part in parts[1:]] == [PUBLIC, uri(png(8, 8))]
