"""The call that the built-in chat model gets in place of a provider."""

from penstock.chat.mock import mock_chat
from penstock.chat.request import read_chat_request
from penstock.settings import Settings
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.small_request import call_with


@sqlite_only
async def test_a_mock_is_free_and_gets_no_field_that_only_other_providers_know(open_gateway: OpenGateway) -> None:
    body = {"model": "lab/chat", "messages": [{"role": "user", "content": "x"}], "temperature": 0.5, "top_k": 3}
    async with open_gateway(disabled_providers=()) as running:
        chat, route = mock_chat(running.gateway, read_chat_request(call_with(body), Settings()))
        assert chat.body == {name: value for name, value in body.items() if name != "top_k"}
        assert chat.extras == {}
        assert [candidate.model.prices for candidate in route.candidates] == [()]
