"""The idempotency key of a call: in its body, in its header, or in both."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.generations.idempotency_keys import first_look, idempotency_key
from penstock.schema import Call
from tests.gateway import OpenGateway, sqlite_only


async def a_call(open_gateway: OpenGateway, body: Any, key: str | None) -> Call:
    async with open_gateway() as running:
        return running.call(body, headers={} if key is None else {"idempotency-key": key})


@sqlite_only
@pytest.mark.parametrize(
    ("field", "header", "found"),
    [(None, None, None), ("a", None, "a"), (None, "a", "a"), ("a", "a", "a"), ("a", "b", None), (None, " ", None)],
)
async def test_a_key_is_in_the_body_or_the_header(
    open_gateway: OpenGateway, field: str | None, header: str | None, found: str | None
) -> None:
    body = {} if field is None else {"idempotency_key": field}
    call = await a_call(open_gateway, body, header)
    assert first_look(call, "video") == found
    if found is None and header is not None:
        with pytest.raises(InvalidRequest):
            idempotency_key(call, body, "video")
    else:
        assert idempotency_key(call, body, "video") == found
        assert idempotency_key(call, body, "image") == (found and f"image\n{found}")


@sqlite_only
async def test_a_first_look_takes_no_key_that_is_no_text_or_too_long(open_gateway: OpenGateway) -> None:
    for wrong in (7, "", "x" * 257, ["a"]):
        assert first_look(await a_call(open_gateway, {"idempotency_key": wrong}, None), "video") is None
    assert first_look(await a_call(open_gateway, ["no object"], None), "video") is None
