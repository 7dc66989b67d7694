"""Models over HTTP; their ids contain slashes."""

import threading
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError

from penstock.api.asgi import AsgiApp
from penstock.api.endpoints import models
from penstock.models.catalog import Catalog
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving
from tests.gateway import OpenGateway

MODEL = "atelier/sketch"


async def test_models_are_listed_in_the_envelope(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        response = await served.call("GET", "/compat/v1/models", key=key)
        assert response.json["object"] == "list"
        found = {model["id"]: model for model in response.json["data"]}
        assert found[MODEL].keys() >= {"id", "object", "created", "owned_by"}
        assert not any("schema" in model for model in response.json["data"])


async def test_schema_adds_the_parameters_of_a_model(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        listed = await served.call("GET", "/compat/v1/models?schema=true", key=key)
        assert all(model["schema"]["type"] == "object" for model in listed.json["data"])
        one = await served.call("GET", f"/compat/v1/models/{MODEL}?schema=true", key=key)
        assert "prompt" in one.json["schema"]["properties"]
        assert "schema" not in (await served.call("GET", f"/compat/v1/models/{MODEL}?schema=false", key=key)).json
        assert (await served.call("GET", f"/compat/v1/models/{MODEL}?schema=1", key=key)).code == "INVALID_REQUEST"


@pytest.mark.parametrize("written", ["atelier/sketch", "atelier%2Fsketch", "atelier%2fsketch"])
async def test_a_model_id_is_the_whole_rest_of_the_path(tmp_path: Path, written: str) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        assert (await served.call("GET", f"/compat/v1/models/{written}", key=key)).json["id"] == MODEL


@pytest.mark.parametrize("written", ["no", "no/such/model", "../../v1/keys", "%25", "a" * 4000])
async def test_an_unknown_model_is_a_404_with_its_code(tmp_path: Path, written: str) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        response = await served.call("GET", f"/compat/v1/models/{written}", key=key)
        assert (response.status, response.code) == (404, "MODEL_NOT_FOUND")
        assert response.json["error"]["type"] == "invalid_request_error"


async def test_openais_client_lists_and_retrieves_models(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        async with AsyncOpenAI(api_key=key, base_url=f"http://127.0.0.1:{served.port}/compat/v1") as client:
            assert MODEL in [model.id async for model in client.models.list()]
            assert (await client.models.retrieve(MODEL)).owned_by == "atelier"
            with pytest.raises(NotFoundError) as problem:
                await client.models.retrieve("no/such")
        assert problem.value.code == "MODEL_NOT_FOUND"
        assert (problem.value.request_id or "").startswith("req_")


async def test_the_list_is_written_once_and_not_in_the_thread_of_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Catalog.describe_all
    threads: list[int] = []

    def watched(catalog: Catalog, schema: bool = False) -> list[dict[str, Any]]:
        threads.append(threading.get_ident())
        return write(catalog, schema)

    monkeypatch.setattr(Catalog, "describe_all", watched)
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        for _ in range(3):
            assert (await served.call("GET", "/compat/v1/models?schema=true", key=key)).status == 200
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_the_models_of_a_provider_appear_with_its_first_account(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = (await first_account(gateway)).plain.key
        before = (await served.call("GET", "/compat/v1/models", key=key)).json["data"]
        gateway.catalog.set_accounts(frozenset({"fal"}))
        after = (await served.call("GET", "/compat/v1/models", key=key)).json["data"]
        assert not any("fal" in model["providers"] for model in before)
        assert any("fal" in model["providers"] for model in after)


async def test_details_show_who_serves_a_model_and_an_example_of_it(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        image = await running.image()
        running.gateway.health.record_failure("lab", "easel-1", "down", 60.0)
        call = running.call(query={"details": "true"})
        listed = {model["id"]: model for model in (await models.list_models(running.gateway, call)).json["data"]}
        served = [(each["provider"], each["healthy"]) for each in listed["image-1"]["serving"]]
        assert served == [("annex", True), ("lab", False)], "unhealthy ones are tried last"
        assert listed["image-1"]["example"]["request_id"] == image["id"]
        assert listed["image-1"]["example"]["url"].startswith("http://gateway.test/m/")
        assert listed["video-1"]["example"] is None
        one = await models.retrieve_model(running.gateway, running.call(query={"details": "true"}, model="image-1"))
        assert one.json["example"]["request_id"] == image["id"]

        other = await running.create_caller_in_new_org()
        foreign = await models.list_models(running.gateway, running.call(query={"details": "true"}, caller=other))
        assert all(model["example"] is None for model in foreign.json["data"])
        await running.purge(image["id"])
        one = await models.retrieve_model(running.gateway, running.call(query={"details": "true"}, model="image-1"))
        assert one.json["example"] is None
        plain = await models.retrieve_model(running.gateway, running.call(model="image-1"))
        assert not {"serving", "example"} & plain.json.keys()


async def test_models_that_lack_a_variable_are_listed_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        account = await first_account(gateway)
        usual = await served.call("GET", "/compat/v1/models", key=account.admin.key)
        found = await served.call("GET", "/compat/v1/models?off=true&search=flux-2-klein-9b", key=account.admin.key)
        of_fal = await served.call("GET", "/compat/v1/models?off=true&provider=fal&details=true", key=account.admin.key)
    assert not any("missing" in model for model in usual.json["data"])
    [model] = found.json["data"]
    assert (model["id"], model["missing"]) == ("flux-2-klein-9b", {"bfl": ["BFL_API_KEY"]})
    assert model["pricing"][0]["usd"]
    assert of_fal.json["data"]
    assert all(model["missing"]["fal"] == ["FAL_KEY"] for model in of_fal.json["data"])
