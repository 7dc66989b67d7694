"""The list of providers over HTTP."""

from pathlib import Path

from penstock.api.asgi import AsgiApp
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving


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
    assert rows["atelier"]["models"] == len({model.id for model in gateway.catalog.known["atelier"].models})
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
