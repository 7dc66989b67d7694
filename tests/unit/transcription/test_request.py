"""The fields of calls of transcription; what is refused is in test_endpoint.py."""

import msgspec

from penstock.net.checked_urls import NO_EXCEPTIONS
from penstock.transcription.request import ListenRequest, read_request
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.transcription.listen_calls import form_call


def read(running: RunningGateway, *fields: tuple[str, str]) -> ListenRequest:
    return read_request(form_call(running, ("model", "lab/listen"), *fields), "transcription", NO_EXCEPTIONS)


@sqlite_only
async def test_lists_are_written_in_several_ways(open_gateway: OpenGateway) -> None:
    """Clients repeat a name with brackets, without, or number it."""
    async with open_gateway() as running:
        form = ("response_format", "verbose_json")
        for names in (
            ["timestamp_granularities[]"] * 2,
            ["timestamp_granularities"] * 2,
            ["timestamp_granularities[0]", "timestamp_granularities[1]"],
        ):
            found = read(running, form, *zip(names, ("segment", "word"), strict=True))
            assert found.written["timestamp_granularities"] == ["segment", "word"]
            assert found.words
            assert found.detail == "word"


@sqlite_only
async def test_granularities_matter_for_verbose_json_only(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        found = read(running, ("timestamp_granularities[]", "word"), ("response_format", "srt"))
        assert (found.words, found.detail) == (False, "segment")


@sqlite_only
async def test_empty_fields_count_as_absent(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        found = read(running, ("language", ""), ("prompt", ""), ("temperature", ""))
        assert found.values == {}


@sqlite_only
async def test_the_sound_is_not_among_the_written_fields(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        found = read(running, ("user", "u-1"))
        assert found.written == {"model": "lab/listen", "user": "u-1"}
        assert found.records == {"user": "u-1"}
        call = msgspec.structs.replace(running.call({"model": "m", "input_audio": {"data": "UklGRg=="}}), is_form=False)
        found = read_request(call, "transcription", NO_EXCEPTIONS)
        assert found.written == {"model": "m"}
        assert found.param == "input_audio"
