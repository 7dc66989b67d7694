"""Aliases over HTTP: calls of the organization that ask for one get its model."""

from pathlib import Path
from typing import Any

from tests.api.accounts import Account
from tests.api.http_calls import form
from tests.api.running import RunningGateway, running

IMAGE = {"model": "hero", "prompt": "a pear", "size": "64x64"}


async def listed(
    here: RunningGateway, model: str, query: str = "", *, of: Account | None = None
) -> list[dict[str, Any]]:
    """The entries of the list of models with this id."""
    response = await here.get(f"/compat/v1/models{query}", of)
    return [found for found in response.json["data"] if found["id"] == model]


async def test_calls_for_an_alias_get_its_model_until_it_is_removed(tmp_path: Path) -> None:
    async with running(tmp_path, works=True) as here:
        key = here.mine.plain.key
        images = "/compat/v1/images/generations"
        assert (await here.served.call("POST", images, key=key, body=IMAGE)).code == "MODEL_NOT_FOUND"
        refused = await here.served.call("PUT", "/v1/aliases/hero", key=key, body={"model": "atelier/sketch"})
        assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
        assert (await here.admin("PUT", "/v1/aliases/hero", {"model": "atelier/nothing"})).code == "MODEL_NOT_FOUND"
        assert (await here.admin("PUT", "/v1/aliases/hero", {"model": "atelier/sketch"})).status == 200
        listed = (await here.get("/v1/aliases")).json["data"]
        assert listed == [{"object": "alias", "name": "hero", "model": "atelier/sketch"}]
        assert (await here.get("/v1/aliases", here.theirs)).json["data"] == []
        dry = await here.served.call("POST", f"{images}?dryRun=true", key=key, body=IMAGE)
        assert (dry.status, dry.json["candidates"][0]["model"]) == (200, "atelier/sketch")
        theirs = await here.served.call("POST", f"{images}?dryRun=true", key=here.theirs.plain.key, body=IMAGE)
        assert theirs.code == "MODEL_NOT_FOUND"
        batch = {"endpoint": "/v1/images/generations", "requests": [IMAGE], "start": False}
        estimate = await here.served.call("POST", "/v1/batches?dryRun=true", key=key, body=batch)
        assert estimate.json["rows"] == 1
        trial = {"models": ["hero", "atelier/sketch"], "prompts": ["a pear"]}
        refused = await here.served.call("POST", "/v1/trials", key=key, body=trial)
        assert (refused.status, refused.json["error"]["param"]) == (400, "models")
        assert (await here.admin("DELETE", "/v1/aliases/hero")).status == 204
        assert (await here.served.call("POST", images, key=key, body=IMAGE)).code == "MODEL_NOT_FOUND"


async def test_the_model_of_a_form_and_of_a_chat_may_be_an_alias(tmp_path: Path) -> None:
    async with running(tmp_path, works=True) as here:
        for name, model in (("edits", "atelier/retouch"), ("talk/er", "atelier/echo")):
            assert (await here.admin("PUT", f"/v1/aliases/{name}", {"model": model})).status == 200
        key = here.mine.plain.key
        chat = {"model": "talk/er", "messages": [{"role": "user", "content": "hi"}]}
        answered = await here.served.call("POST", "/compat/v1/chat/completions", key=key, body=chat)
        assert answered.status == 200, answered.body
        fields = (("model", b"edits", None), ("prompt", b"a hat", None), ("image", b"no image", "a.png"))
        body, headers = form(*fields)
        edited = await here.served.call("POST", "/compat/v1/images/edits", key=key, body=body, headers=headers)
        assert edited.code != "MODEL_NOT_FOUND", edited.body


async def test_models_are_listed_and_found_by_their_aliases(tmp_path: Path) -> None:
    async with running(tmp_path, works=True) as here:
        (real,) = await listed(here, "atelier/sketch")
        for name, model in (("hero", "atelier/sketch"), ("atelier/echo", "atelier/clip")):
            assert (await here.admin("PUT", f"/v1/aliases/{name}", {"model": model})).status == 200
        hero = {**real, "id": "hero", "alias_of": "atelier/sketch"}
        assert await listed(here, "hero") == [hero]
        assert await listed(here, "atelier/sketch") == [real]
        assert [each["alias_of"] for each in await listed(here, "atelier/echo")] == ["atelier/clip"]
        assert [each["id"] for each in await listed(here, "hero", "?search=hero")] == ["hero"]
        (detailed,) = await listed(here, "hero", "?details=true")
        assert [each["provider"] for each in detailed["serving"]] == ["atelier"]
        assert (await here.get("/compat/v1/models/hero")).json == hero
        assert (await here.get("/compat/v1/models/hero", here.theirs)).code == "MODEL_NOT_FOUND"
        assert await listed(here, "hero", of=here.theirs) == []


async def test_a_key_that_is_limited_to_models_sees_the_aliases_that_it_may_use(tmp_path: Path) -> None:
    async with running(tmp_path, works=True) as here:
        for name, model in (("hero", "atelier/sketch"), ("film", "atelier/clip"), ("talk", "atelier/echo")):
            assert (await here.admin("PUT", f"/v1/aliases/{name}", {"model": model})).status == 200
        made = await here.admin("POST", "/v1/keys", {"models": ["hero", "atelier/clip"]})
        response = await here.served.call("GET", "/compat/v1/models", key=made.json["key"])
        assert sorted(model["id"] for model in response.json["data"]) == ["atelier/clip", "film", "hero"]
