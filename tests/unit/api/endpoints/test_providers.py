"""The list of providers over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.endpoints.providers import check_provider
from penstock.errors import Conflict, InvalidRequest, NotFound
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only


async def test_providers_are_listed_with_their_health(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        account = await first_account(gateway)
        gateway.health.record_success("atelier", "sketch")
        for _ in range(3):
            gateway.health.record_failure("atelier", "clip", "broken")
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            response = await served.call("GET", "/v1/providers", key=account.admin.key)
    assert response.status == 200
    rows = {provider["id"]: provider for provider in response.json["data"]}
    assert list(rows) == sorted(rows)
    assert (rows["atelier"]["on"], rows["atelier"]["reason"], rows["atelier"]["credential"]) == (True, None, None)
    assert rows["atelier"]["models"] == len({model.id for model in gateway.catalog.providers.known["atelier"].models})
    assert {
        health["model"]: (health["healthy"], health["successes"], health["failures"])
        for health in rows["atelier"]["health"]
    } == {
        "sketch": (True, 1, 0),
        "clip": (False, 0, 3),
    }
    histories = {health["model"]: health["history"] for health in rows["atelier"]["health"]}
    assert [(each["is_success"], each["problem"]) for each in histories["clip"]] == [(False, "broken")] * 3
    assert histories["sketch"][0]["is_success"]
    assert rows["fal"]["variables"] == [{"name": "FAL_KEY", "purpose": "credential", "is_set": False}]
    assert (rows["fal"]["missing"], rows["atelier"]["missing"]) == (["FAL_KEY"], [])
    off = rows["fal"]
    assert (off["on"], off["reason"], off["credential"], off["health"]) == (False, "FAL_KEY is not set", "FAL_KEY", [])


async def test_the_list_of_providers_needs_the_operator_scope(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        account = await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            response = await served.call("GET", "/v1/providers", key=account.plain.key)
            assert response.code == "PERMISSION_DENIED"


@sqlite_only
async def test_a_check_is_a_real_request_of_the_operators_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gateway = running.gateway

        async def check(slug: str = "lab", query: dict[str, str] | None = None, **body: str) -> Any:
            return (await check_provider(gateway, running.call(body, query=query, provider=slug))).json

        estimate = await check(query={"dryRun": "true"}, model="image-1")
        assert (estimate["status"], estimate["kind"], estimate["request_id"]) == ("estimated", "image", None)
        assert await running.records() == []
        works = await check(model="image-1")
        assert (works["status"], works["cost"], works["error"]) == ("works", estimate["estimate"], None)
        assert (await running.record(works["request_id"]))["status"] == "completed"
        running.lab.images.next(faults.unauthorized)
        failed = await check(model="image-1")
        assert (failed["status"], failed["cost"], failed["error"]["code"]) == ("failed", 0, "UPSTREAM_ERROR")
        assert (await check())["kind"] == "chat", "the cheapest one"
        video = await check(model="video-1")
        assert (video["status"], video["cost"]) == ("started", None)
        await running.wait_for_video(video["request_id"])
        with pytest.raises(NotFound):
            await check("nobody")
        with pytest.raises(Conflict, match="FAL_KEY is not set"):
            await check("fal")
        with pytest.raises(InvalidRequest):
            await check(modell="x")
