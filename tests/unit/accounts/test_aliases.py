"""Names of models: a call for an alias gets its model, in every process, for its organization only."""

import pytest

from penstock.accounts import aliases
from penstock.accounts.aliases import aliased, read_aliases, remove_alias, set_alias, with_alias
from penstock.errors import Conflict, InvalidRequest, NotFound
from tests.gateway import OpenGateway, caller_with, sqlite_only


async def test_an_alias_is_set_changed_and_removed_and_the_audit_log_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        store, clock, org_id = running.gateway.store, running.clock, running.caller.org_id
        await set_alias(store, clock, org_id, "hero", "image-1")
        await set_alias(store, clock, org_id, "hero", "lab/image-1")
        assert await read_aliases(store, org_id) == {"hero": "lab/image-1"}
        other = await running.create_caller_in_new_org()
        assert await read_aliases(store, other.org_id) == {}
        with pytest.raises(NotFound):
            await remove_alias(store, clock, other.org_id, "hero")
        caller = await running.create_caller()
        assert (caller.model_aliases, other.model_aliases) == ({"hero": "lab/image-1"}, {})
        await remove_alias(store, clock, org_id, "hero")
        assert await read_aliases(store, org_id) == {}
        events = await running.rows("SELECT action, target FROM audit_events WHERE target = 'hero' ORDER BY id")
        assert [event["action"] for event in events] == ["alias.set", "alias.set", "alias.removed"]


@sqlite_only
async def test_what_cannot_be_an_alias_is_refused(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway(works=False) as running:
        store, clock, org_id = running.gateway.store, running.clock, running.caller.org_id
        for name in ("", "-x", "a b", "x" * 129, "image-1"):
            with pytest.raises(InvalidRequest):
                await set_alias(store, clock, org_id, name, "image-1")
        await set_alias(store, clock, org_id, "hero", "image-1")
        with pytest.raises(Conflict, match="an alias itself"):
            await set_alias(store, clock, org_id, "cover", "hero")
        monkeypatch.setattr(aliases, "MAX_ALIASES", 1)
        with pytest.raises(Conflict, match="1 aliases"):
            await set_alias(store, clock, org_id, "cover", "image-1")


@sqlite_only
async def test_only_the_model_of_a_call_is_replaced(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        caller = caller_with(running.caller, model_aliases={"hero": "image-1"})
        body = {"model": "hero", "prompt": "hero"}
        call = running.call(body, caller=caller)
        assert with_alias(call).json == {"model": "image-1", "prompt": "hero"}
        assert with_alias(running.call(body, caller=caller, endpoint="/v1/recordings")).json == body
        assert with_alias(running.call({"model": "image-1"}, caller=caller)).json == {"model": "image-1"}
        assert with_alias(running.call({"model": ["hero"]}, caller=caller)).json == {"model": ["hero"]}
        assert aliased(caller, body)["model"] == "image-1"
        assert aliased(running.caller, body) is body


@sqlite_only
async def test_a_key_that_may_use_the_alias_may_use_its_model(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for models, may in ((("hero",), True), (("image-1",), True), (("video-1",), False), (None, True)):
            caller = caller_with(running.caller, model_aliases={"hero": "image-1"}, models=models)
            assert with_alias(running.call({"model": "hero"}, caller=caller)).caller.may_use("image-1") is may
            assert not models or caller.may_use("image-1") is (models == ("image-1",))


@sqlite_only
async def test_other_processes_notice_an_alias_within_two_seconds(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        keys = running.gateway.keys
        bearer = f"Bearer {running.key}"
        assert (await keys.authenticate(bearer)).model_aliases == {}
        await set_alias(running.gateway.store, running.clock, running.caller.org_id, "hero", "image-1")
        assert (await keys.authenticate(bearer)).model_aliases == {}
        running.clock.advance(2)
        assert (await keys.authenticate(bearer)).model_aliases == {"hero": "image-1"}
