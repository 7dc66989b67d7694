"""Headers and bodies of calls: what is accepted, and how the rest is refused."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import errors
from penstock.api import body as module
from penstock.api.body import (
    NO_BODY,
    Body,
    Disconnected,
    Limits,
    Receive,
    check_headers,
    decode_headers,
    decode_json_object,
    discard,
    read_body,
)
from penstock.api.route import Takes
from penstock.long_bodies import json_decoding
from penstock.settings import Settings
from tests.loop_time import jumping_time
from tests.work import lines_run

LIMITS = Limits(json_bytes=1000, form_bytes=2000, file_bytes=2000, seconds=5.0)
JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=b"}
ONE_FIELD = b'--b\r\nContent-Disposition: form-data; name="n"\r\n\r\n2\r\n--b--\r\n'


def sending(*chunks: bytes, then: Iterable[dict[str, Any]] = ()) -> Receive:
    """A client that sends these chunks, and then these messages or nothing."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks) or bool(then)}
        for number, chunk in enumerate(chunks, 1)
    ]
    messages += then

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.sleep(3600)
        return messages.pop(0)

    return receive


async def read(takes: Takes, headers: dict[str, str], *chunks: bytes, limits: Limits = LIMITS) -> Body:
    return await read_body(takes, headers, sending(*chunks), limits)


# -------------------------------------------------------------------------------------------------------------- headers


def lines(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


def checked(*pairs: tuple[str, str]) -> dict[str, str]:
    raw = lines(*pairs)
    found = decode_headers(raw)
    check_headers(raw, found, "1.1")
    return found


def test_headers_are_found_by_name() -> None:
    assert checked(("host", "a"), ("x-name", "é")) == {"host": "a", "x-name": "é"}


def test_list_headers_may_be_repeated() -> None:
    assert checked(("host", "a"), ("accept", "x/y"), ("accept", "*/*"))["accept"] == "x/y, */*"


def test_a_repeated_authorization_header_is_refused() -> None:
    with pytest.raises(errors.AuthenticationFailed):
        checked(("host", "a"), ("authorization", "Bearer 1"), ("authorization", "Bearer 1"))


@pytest.mark.parametrize("name", ["host", "content-type", "content-length", "x-service-replay", "traceparent"])
def test_other_headers_must_not_be_repeated(name: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=name):
        checked(("host", "a"), (name, "1"), (name, "2"))


def test_a_host_header_is_required() -> None:
    with pytest.raises(errors.InvalidRequest, match="Host"):
        checked(("accept", "*/*"))


def test_headers_have_a_maximum_size() -> None:
    checked(("host", "a"), ("x", "y" * 32_000))
    with pytest.raises(errors.HeadersTooLarge):
        checked(("host", "a"), ("x", "y" * 32_768))
    with pytest.raises(errors.HeadersTooLarge):
        checked(("host", "a"), *((f"x-{number}", "") for number in range(100)))


# -------------------------------------------------------------------------------------------------------- content types


async def test_json_is_read_in_one_piece_or_many() -> None:
    for chunks in ([b'{"a":[1]}'], [b'{"a"', b":[1", b"]}"], [b"", b'{"a":[1]}', b""]):
        body = await read("json", JSON, *chunks)
        assert (body.raw, body.json, body.is_form, body.size_bytes) == (b'{"a":[1]}', {"a": [1]}, False, 9)


async def test_a_body_that_has_arrived_is_not_waited_for() -> None:
    body = await read_body("json", JSON, sending(), LIMITS, arrived=lambda: b'{"a":1}')
    assert body.json == {"a": 1}
    with pytest.raises(errors.PayloadTooLarge, match="1000"):
        await read_body("json", JSON, sending(), LIMITS, arrived=lambda: b" " * 1001)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"', None])
async def test_content_types_of_json_are_accepted(kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    assert (await read("json", headers, b"{}")).json == {}


@pytest.mark.parametrize(
    ("takes", "headers"),
    [
        ("json", {"content-type": "application/x-www-form-urlencoded"}),
        ("json or form", {"content-type": "application/x-www-form-urlencoded"}),
        ("json", {"content-type": "text/plain"}),
        ("json", {"content-type": ""}),
        ("json", FORM),
        ("form", JSON),
        ("json", {"content-type": "application/json; charset=utf-16"}),
        ("json", {**JSON, "content-encoding": "gzip"}),
        ("nothing", {**JSON, "content-encoding": "br"}),
    ],
)
async def test_other_content_types_are_a_415(takes: Takes, headers: dict[str, str]) -> None:
    with pytest.raises(errors.UnsupportedMediaType):
        await read(takes, headers, b"{}")


async def test_a_415_says_which_header_to_set() -> None:
    with pytest.raises(errors.UnsupportedMediaType) as problem:
        await read("json", {"content-type": "application/x-www-form-urlencoded"}, b"a=b")
    assert problem.value.message == ("Content-Type is application/x-www-form-urlencoded but must be application/json.")


async def test_forms_are_read_where_they_are_accepted() -> None:
    body = await read("json or form", FORM, ONE_FIELD[:20], ONE_FIELD[20:])
    assert (body.is_form, body.form, body.size_bytes, body.raw) == (True, (("n", "2"),), len(ONE_FIELD), b"")


# --------------------------------------------------------------------------------------------------------------- sizes


async def test_an_announced_size_is_refused_before_a_byte_is_read() -> None:
    async def never_called() -> dict[str, Any]:
        raise AssertionError

    for takes, headers, most in (("json", JSON, 1000), ("form", FORM, 2000), ("raw", {}, 1024**2)):
        for size in (most + 1, 10**30):
            with pytest.raises(errors.PayloadTooLarge, match=str(most)):
                await read_body(takes, {**headers, "content-length": str(size)}, never_called, LIMITS)  # type: ignore[arg-type]


async def test_an_unannounced_size_is_counted() -> None:
    received = 0

    async def endless() -> dict[str, Any]:
        nonlocal received
        received += 100
        return {"type": "http.request", "body": b" " * 100, "more_body": True}

    for takes, headers, most in (("json", JSON, 1000), ("raw", {"transfer-encoding": "chunked"}, 1024**2)):
        received = 0
        with pytest.raises(errors.PayloadTooLarge, match=str(most)):
            await read_body(takes, headers, endless, LIMITS)  # type: ignore[arg-type]
        assert received <= most + 100


async def test_a_body_of_exactly_the_limit_is_accepted() -> None:
    body = b'{"a":"' + b"x" * (1000 - 8) + b'"}'
    assert (await read("json", {**JSON, "content-length": "1000"}, body)).size_bytes == 1000


@pytest.mark.parametrize("length", ["abc", "-1", "+4", "1e3", "٤", ""])
async def test_content_length_must_be_a_number(length: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        await read("json", {**JSON, "content-length": length}, b"{}")


async def test_a_body_that_no_call_needs_is_never_read() -> None:
    async def never_called() -> dict[str, Any]:
        raise AssertionError

    for headers in ({"content-length": "5"}, {"transfer-encoding": "chunked"}):
        with pytest.raises(errors.InvalidRequest, match="takes no body"):
            await read_body("nothing", headers, never_called, LIMITS)
        assert await read_body("unread", headers, never_called, LIMITS) == NO_BODY
    assert await read_body("nothing", {"content-length": "0"}, never_called, LIMITS) == NO_BODY


def test_limits_come_from_the_settings() -> None:
    limits = Limits.of(Settings(json_bytes=1, form_bytes=2, image_bytes=4, body_seconds=3.0))
    assert limits == Limits(1, 2, 4, 3.0, window_seconds=10.0, window_bytes=10 * 1024)


# ---------------------------------------------------------------------------------------------------------------- time


async def test_a_slow_body_is_a_408() -> None:
    limits = Limits(10**6, 10**6, 10**6, seconds=60, window_seconds=10, window_bytes=100)

    async def trickle() -> dict[str, Any]:
        await asyncio.sleep(1)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with jumping_time(), pytest.raises(errors.RequestTimeout, match="too slowly"):
        await read_body("json", JSON, trickle, limits)


async def test_a_body_that_never_arrives_is_a_408() -> None:
    limits = Limits(10**6, 10**6, 10**6, seconds=60, window_seconds=10, window_bytes=100)
    with jumping_time(), pytest.raises(errors.RequestTimeout):
        await read_body("json", JSON, sending(), limits)


async def test_a_body_past_its_deadline_is_a_408_at_any_speed() -> None:
    limits = Limits(10**9, 10**9, 10**9, seconds=60, window_seconds=10, window_bytes=1)

    async def steady() -> dict[str, Any]:
        await asyncio.sleep(1)
        return {"type": "http.request", "body": b" " * 100, "more_body": True}

    with jumping_time(), pytest.raises(errors.RequestTimeout, match="longer than 60 seconds"):
        await read_body("json", JSON, steady, limits)
    with jumping_time(), pytest.raises(errors.RequestTimeout, match="longer than 10 seconds"):
        await read_body("raw", {}, steady, limits)  # which needs no key


async def test_a_body_at_the_minimum_speed_is_accepted() -> None:
    limits = Limits(10**6, 10**6, 10**6, seconds=60, window_seconds=10, window_bytes=25)
    parts = [b'{"a":', *(b" " * 20 for _ in range(10)), b"1}"]

    async def paced() -> dict[str, Any]:
        await asyncio.sleep(4)  # so two parts arrive in each window of 10 seconds
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    with jumping_time():
        assert (await read_body("json", JSON, paced, limits)).json == {"a": 1}


async def test_a_disconnect_is_reported() -> None:
    for arrived in (None, lambda: None):
        with pytest.raises(Disconnected):
            await read_body("json", JSON, sending(then=[{"type": "http.disconnect"}]), LIMITS, arrived=arrived)
    with pytest.raises(Disconnected):
        await read_body("json", JSON, sending(b"{", then=[{"type": "http.disconnect"}]), LIMITS)


async def test_bytes_after_a_refusal_are_read_and_dropped_up_to_the_limits() -> None:
    await discard(sending(b"x", b"y"), 5, 100)
    await discard(sending(b"x", then=[{"type": "http.disconnect"}]), 5, 100)
    await discard(sending(b"x" * 60, b"x" * 60, then=[{"type": "never"}]), 5, 100)
    async with asyncio.timeout(60):  # the sender never ends, so `discard` itself must
        await discard(sending(b"x", then=[{"type": "http.request", "more_body": True}]), 0.05, 100)


# ---------------------------------------------------------------------------------------------------------------- JSON

DEEP = 100_000
BAD_JSON = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "not a number": (b'{"a":NaN}', "not valid JSON"),
    "infinity": (b'{"a":Infinity}', "not valid JSON"),
    "number out of range": (b'{"a":1e999}', "out of range"),
    "long number": (b'{"a":' + b"9" * 5000 + b"}", "out of range"),
    "number beyond 64 bits": (b'{"a":18446744073709551616}', "out of range"),
    "number beyond 64 bits in a list": (b'{"a":[[-9223372036854775809]]}', "out of range"),
    "half a pair": (b'{"a":"\\ud800"}', "surrogate"),
    "half a pair, then more": (b'{"a":"\\ud800 and some more text"}', "surrogate"),
    "other half of a pair": (b'{"a":"\\udc00"}', "surrogate"),
    "half a pair as a name": (b'{"\\uD800":1}', "surrogate"),
    "half a pair in bytes": (b'{"a":"\xed\xa0\x80"}', "UTF-8"),
    "not UTF-8": (b'{"a":"\xff"}', "UTF-8"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "not valid JSON"),
    "byte order mark": (b'\xef\xbb\xbf{"a":1}', "not valid JSON"),
    "escaped NUL": (b'{"a":"\\u0000"}', "NUL"),
    "escaped NUL in a name": (b'{"a":{"\\u0000":1}}', "NUL"),
    "escaped NUL in a list": (b'{"a":["b",["c\\u0000"]]}', "NUL"),
    "NUL": (b'{"a":"\x00"}', "not valid JSON"),
    "control character": (b'{"a":"\x01"}', "not valid JSON"),
    "very deep": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", "64 levels"),
    "too deep": (b'{"a":' * 65 + b"1" + b"}" * 65, "64 levels"),
    "unfinished": (b'{"a":', "not valid JSON"),
    "trailing comma": (b'{"a":1,}', "not valid JSON"),
    "trailing bytes": (b'{"a":1}{', "not valid JSON"),
    "single quotes": (b"{'a':1}", "not valid JSON"),
    "comment": (b'{"a":1/**/}', "not valid JSON"),
    "list": (b"[]", "object"),
    "word": (b'"a"', "object"),
    "nothing": (b"null", "object"),
    "too many values": (b'{"a":[' + b"1," * 300_000 + b"1]}", "50000"),
}


class Counted:
    """How often the two costly steps of reading JSON were taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded = 0
        self.checked = 0
        decode, check = module._decode, module._check_values

        def count_decode(raw: bytes) -> Any:
            self.decoded += 1
            return decode(raw)

        def count_check(value: dict[str, Any]) -> None:
            self.checked += 1
            check(value)

        monkeypatch.setattr(module, "_decode", count_decode)
        monkeypatch.setattr(module, "_check_values", count_check)


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_refused_with_a_message_and_decoded_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, words = BAD_JSON[name]
    counted = Counted(monkeypatch)
    with pytest.raises(errors.InvalidRequest, match=words):
        decode_json_object(raw)
    assert counted.decoded == (0 if name == "too many values" else 1)
    assert counted.checked <= 1


@pytest.mark.parametrize(
    ("raw", "param", "message"),
    [
        (b'{"n":18446744073709551616}', "n", "`n` contains a number that is out of range."),
        (b'{"m":"x","prompt":"a\\u0000b"}', "prompt", "`prompt` contains a NUL character."),
        (b'{"tags":["a\\u0000b"]}', None, "The body contains a NUL character."),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_by_the_name_of_its_field(
    raw: bytes, param: str | None, message: str
) -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        decode_json_object(raw)
    assert (caught.value.param, caught.value.message) == (param, message)


def test_a_deep_value_is_checked_no_further_than_the_limit() -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(depth):
            value = {"a": value}
        return value

    def refuse(depth: int) -> None:
        with pytest.raises(errors.InvalidRequest, match="64 levels"):
            module._check_values(nested(depth))

    few, many = (lines_run(lambda depth=depth: refuse(depth), "api/body.py") for depth in (100, 900))  # type: ignore[misc]
    assert few == many


def test_valid_json_is_decoded() -> None:
    value = {
        "text": "é \U0001f98a \\u0000 \n",
        "numbers": [0, -1, 2**64 - 1, -(2**63), 1.5, 1e-300],
        "flags": [True, False, None],
        "nested": {"a": {"b": [{"c": []}]}},
    }
    assert decode_json_object(json.dumps(value).encode()) == value
    assert decode_json_object(b'{"a":' * 64 + b"1" + b"}" * 64)


def test_too_many_names_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """To decode a name takes ten times as long as another value, and no other thread runs meanwhile."""
    monkeypatch.setattr(module, "_decode", None)
    monkeypatch.setattr(json_decoding, "_decode_object", None)
    names = b",".join(b'"%d":0' % number for number in range(json_decoding.MAX_COMMAS + 9))
    with pytest.raises(errors.InvalidRequest, match=r"The body may contain 50000 commas outside"):
        decode_json_object(b'{"extra":{%b}}' % names)


def test_of_two_equal_names_the_last_one_counts() -> None:
    assert decode_json_object(b'{"a":1,"a":2}') == {"a": 2}


def test_a_large_image_in_json_is_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are checked as one value, so the number of lines does not grow with the image."""
    counted = Counted(monkeypatch)

    def read(size: int) -> None:
        raw = b'{"image":"data:image/png;base64,' + b"A" * size + b'"}'
        assert len(decode_json_object(raw)["image"]) > size

    small, large = (lines_run(lambda size=size: read(size), "api/body.py") for size in (300_000, 20_000_000))  # type: ignore[misc]
    assert counted.checked == 2
    assert small == large


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(), st.lists, max_leaves=20))
def test_json_of_another_library_is_decoded_alike(value: Any) -> None:
    raw = json.dumps({"value": value}).encode()
    try:
        assert decode_json_object(raw) == {"value": value}
    except errors.InvalidRequest as problem:
        assert "NUL" in problem.message or "surrogate" in problem.message or "UTF-8" in problem.message  # noqa: PT017
        assert b"\\u0000" in raw or b"\\ud" in raw


@given(st.binary(max_size=300))
def test_random_bytes_are_parsed_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(decode_json_object(raw), dict)
    except errors.InvalidRequest:
        return


@pytest.mark.parametrize("sent", [b"{}", b"{}\n", b"  {}"])
async def test_an_empty_object_is_no_body(sent: bytes) -> None:
    """Generic clients send one with every call, also to delete something."""
    headers = {**JSON, "content-length": str(len(sent))}
    assert await read("nothing", headers, sent) == NO_BODY
    with pytest.raises(errors.InvalidRequest, match="takes no body"):
        await read("nothing", headers, b"x" * len(sent))
