"""Documents of a provider's catalogue come from its own host, are small, and are not fetched elsewhere."""

import pytest

from penstock.net.client import HttpClient
from penstock.providers.spec import Model, Provider, bearer
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, route, serving
from tests.unit.upstream.fetched_result import OP

MODEL = Model(id="a/b", upstream="b", op=OP, prices=())


class Shop(FakeProvider):
    credential = ("authorization", "Bearer k")

    @route("GET /v1/small")
    def small(self, call: Exchange) -> FakeResponse:
        return FakeResponse({"models": []})

    @route("GET /v1/large")
    def large(self, call: Exchange) -> FakeResponse:
        return FakeResponse({"models": ["x" * 2000]})

    @route("GET /v1/text")
    def text(self, call: Exchange) -> FakeResponse:
        return FakeResponse(file=b"<html>", content_type="text/html")

    @route("GET /v1/moved")
    def moved(self, call: Exchange) -> FakeResponse:
        return FakeResponse({}, 302, headers={"location": f"{self.url}/v1/small"})


async def test_documents() -> None:
    async with serving(shop := Shop()):
        provider = Provider(slug="shop", name="Shop", docs="", base_url=shop.url, models=(MODEL,), auth=bearer)
        http = HttpClient()
        upstream = Upstream(http, {}, Settings())
        base_url = f"{shop.url}/v1"

        async def get(url: str) -> object:
            target = Candidate(provider, MODEL, "k")
            return await upstream.get_document(target, base_url, url, seconds=5, max_bytes=1000)

        try:
            assert await get("/small") == {"models": []}
            for url in ("/large", "/text", "/moved", "/nothing", "http://elsewhere.invalid/v1/small"):
                with pytest.raises(AttemptFailed):
                    await get(url)
            assert len(shop.received("small")) == 1
        finally:
            await http.close()
