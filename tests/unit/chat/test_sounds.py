"""Chats with sound: what is heard and said is measured, held for, priced by its own tokens, and refused elsewhere."""

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from penstock.chat.endpoint import complete_chat
from penstock.chat.pricing import Usage, make_bill
from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.providers import openai as openai_table
from penstock.providers.spec import Price
from penstock.schema import Response
from penstock.sound.formats import SoundFormat
from penstock.upstream.token_prices import TokenPrices
from tests import sounds
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.chat.chat_calls import chat, last_record, read_stream

TOKENS_A_SECOND = 10
PRICE = {"unit": "token", "input_usd": "0.000001", "usd": "0.000002"}
PRICE["other_usd"] = {"audio_input": "0.00001", "audio_output": "0.00002"}  # type: ignore[assignment]
MODELS: Any = {"lab/chat": {"price": PRICE, "max_sound_tokens": TOKENS_A_SECOND}}
SPEAKS: dict[str, Any] = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
SECONDS = 3.0


def hearing(data: bytes, declared: str = "wav", /, **more: Any) -> list[dict[str, Any]]:
    sound = {"data": b64encode(data).decode(), "format": declared, **more}
    return [
        {"role": "user", "content": [{"type": "text", "text": "what?"}, {"type": "input_audio", "input_audio": sound}]}
    ]


async def dry_run(running: RunningGateway, **body: Any) -> Any:
    asked = {"model": "lab/chat", "max_tokens": 20, **body}
    return (await complete_chat(running.gateway, running.call(asked, query={"dryRun": "true"}))).json


async def test_a_sound_is_measured_held_for_and_charged_by_its_own_tokens(open_gateway: OpenGateway) -> None:
    async with open_gateway(models=MODELS) as running:
        available, _ = await running.money()
        shown = await dry_run(running, messages=hearing(sounds.wav(SECONDS)))
        heard = next(part for part in shown["components"] if float(part["unit_price"]) == 0.00001)
        assert (heard["type"], heard["quantity"]) == ("input", SECONDS * TOKENS_A_SECOND)
        response = await chat(running, messages=hearing(sounds.wav(SECONDS)))
        found = ChatCompletion.model_validate_json(bytes(response.body or b""))
        assert found.choices[0].message.content == "what?"
        record = await last_record(running)
        assert record["cost"] == running.lab.bill_usd * 10**9 > SECONDS * TOKENS_A_SECOND * 10_000
        assert record["cost"] <= shown["total_cost_micros"] * 1000
        assert await running.money() == (available - record["cost"], 0)
        lines = {line["metric"]: line["quantity"] for line in (await running.record(record["id"]))["cost_lines"]}
        assert lines["audio_input_token"] == SECONDS * TOKENS_A_SECOND


@sqlite_only
async def test_a_header_that_lies_about_the_length_does_not_lower_the_hold(open_gateway: OpenGateway) -> None:
    data = bytearray(sounds.wav(SECONDS))
    data[40:44] = (100).to_bytes(4, "little")  # the size of the samples
    async with open_gateway(models=MODELS) as running:
        true = await dry_run(running, messages=hearing(sounds.wav(SECONDS)))
        shown = await dry_run(running, messages=hearing(bytes(data)))
        data[40:44] = (2**32 - 1).to_bytes(4, "little")
        large = await dry_run(running, messages=hearing(bytes(data)))
        assert large["total_cost_micros"] == true["total_cost_micros"]
        assert shown["total_cost_micros"] <= true["total_cost_micros"]  # what no decoder reads costs nothing


@sqlite_only
@pytest.mark.parametrize(
    ("made", "declared", "sent"), [("mp3", "wav", "mp3"), ("flac", "flac", "wav"), ("opus", "ogg", "wav")]
)
async def test_a_provider_gets_wav_or_mp3_named_as_what_it_is(
    open_gateway: OpenGateway, made: SoundFormat, declared: str, sent: str
) -> None:
    data = sounds.encoded(made, SECONDS)
    async with open_gateway(models=MODELS) as running:
        await chat(running, messages=hearing(data, declared))
        sound = running.lab.chats.received[0].fields["messages"][0]["content"][1]["input_audio"]
        assert sound["format"] == sent
        got = b64decode(sound["data"])
        assert sounds.container_of(got) == sent
        assert (got == data) == (made == sent)
        assert sounds.seconds_of(got) == pytest.approx(SECONDS, abs=0.1)


async def test_speech_passes_unchanged_and_is_charged_by_its_own_tokens(open_gateway: OpenGateway) -> None:
    async with open_gateway(models=MODELS) as running:
        response = await chat(running, **SPEAKS, max_tokens=100)
        message = ChatCompletion.model_validate_json(bytes(response.body or b"")).choices[0].message
        assert message.audio is not None
        assert (message.audio.transcript, message.content) == ("one two three", None)
        assert sounds.container_of(b64decode(message.audio.data)) == "wav"
        assert running.lab.chats.received[0].fields["audio"] == SPEAKS["audio"]
        record = await last_record(running)
        assert record["cost"] == running.lab.bill_usd * 10**9 > 20 * 20_000


async def test_streamed_speech_comes_in_its_pieces(open_gateway: OpenGateway) -> None:
    spoken = {**SPEAKS, "audio": {"voice": "alloy", "format": "pcm16"}}
    async with open_gateway(models=MODELS) as running:
        events = await read_stream(await chat(running, **spoken, stream=True, max_tokens=100))
        chunks = [json.loads(line[6:]) for line in events.decode().split("\n\n") if line[6:] not in ("", "[DONE]")]
        for chunk in chunks:
            ChatCompletionChunk.model_validate(chunk)
        deltas = [choice["delta"].get("audio") or {} for chunk in chunks for choice in chunk["choices"]]
        data = b64decode("".join(delta.get("data", "") for delta in deltas))
        assert sounds.hertz_of(data, "pcm") == pytest.approx(220, rel=0.01)
        assert [delta["transcript"] for delta in deltas if "transcript" in delta] == ["one two three"]
        assert (await last_record(running))["cost"] == running.lab.bill_usd * 10**9


@sqlite_only
async def test_a_caller_who_leaves_pays_for_the_speech_that_came(open_gateway: OpenGateway) -> None:
    spoken = {**SPEAKS, "audio": {"voice": "alloy", "format": "pcm16"}}
    async with open_gateway(models=MODELS) as running:
        running.lab.chats.next(faults.stalled_stream(4))
        response = await chat(running, **spoken, stream=True, max_tokens=100)
        assert response.chunks is not None
        async for piece in response.chunks:
            if b'"data"' in piece:
                break
        await response.chunks.aclose()  # type: ignore[attr-defined]
        record = await last_record(running)
        lines = {line["metric"]: line["quantity"] for line in (await running.record(record["id"]))["cost_lines"]}
        assert record["status"] == "cancelled"
        assert 0 < lines["audio_output_token"] <= 20


@sqlite_only
async def test_models_without_a_price_of_sound_refuse_it_by_name(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest, match="no price of its audio tokens") as refused:
            await chat(running, messages=hearing(sounds.wav(0.2)))
        assert refused.value.param == "messages[0].content[1].type"
        with pytest.raises(InvalidRequest, match="does not speak in chats") as refused:
            await chat(running, **SPEAKS)
        assert refused.value.param == "modalities"
        assert running.lab.chats.received == []


@sqlite_only
async def test_a_model_that_costs_nothing_hears_for_nothing(open_gateway: OpenGateway) -> None:
    free: Any = {"lab/chat": {"price": {"unit": "token", "input_usd": "0", "usd": "0"}}}
    async with open_gateway(models=free) as running:
        response: Response = await chat(running, messages=hearing(sounds.wav(0.5)))
        assert response.status == 200
        assert (await last_record(running))["cost"] == 0


@sqlite_only
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": hearing(b"no sound at all")}, "messages[0].content[1].input_audio.data"),
        ({"messages": hearing(b"RIFF", data="%%%")}, "messages[0].content[1].input_audio.data"),
        ({"messages": hearing(b"RIFF", data=5)}, "messages[0].content[1].input_audio.data"),
        ({"messages": hearing(b"RIFF", format=None)}, "messages[0].content[1].input_audio.format"),
        ({"messages": hearing(b"RIFF", url="x")}, "messages[0].content[1].input_audio.url"),
        ({"messages": [{"role": "assistant", "content": hearing(b"x")[0]["content"]}]}, "messages[0].content[1].type"),
        ({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]}, "messages[0].audio"),
        ({"modalities": ["image"]}, "modalities"),
        ({"modalities": "audio"}, "modalities"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({**SPEAKS, "audio": "alloy"}, "audio"),
        ({**SPEAKS, "audio": {"voice": "alloy", "format": "wav", "seconds": 9}}, "audio.seconds"),
    ],
)
async def test_a_wrong_sound_is_refused_by_the_name_of_its_field(
    open_gateway: OpenGateway, body: dict[str, Any], param: str
) -> None:
    async with open_gateway(models=MODELS) as running:
        with pytest.raises(InvalidRequest) as refused:
            await chat(running, **body)
        assert refused.value.param == param
        assert await running.records() == []


@sqlite_only
async def test_a_sound_may_have_as_many_bytes_as_the_settings_say(open_gateway: OpenGateway) -> None:
    async with open_gateway(models=MODELS, input_audio_bytes=1000) as running:
        with pytest.raises(PayloadTooLarge):
            await chat(running, messages=hearing(sounds.wav(1)))


def test_what_the_provider_does_not_say_is_taken_from_the_length() -> None:
    price = Price(unit="token", usd="0", input_usd="0.000001", other_usd={"audio_input": "0.00001"})
    model = openai_table.PROVIDER.models[-1]
    prices = TokenPrices.of(model.__class__(id="m", upstream="m", op=model.op, prices=(price,)))
    assert make_bill(prices, Usage(prompt_tokens=100), sound_tokens=30).cost == 70 * 1000 + 30 * 10_000
    assert make_bill(prices, Usage(prompt_tokens=20), sound_tokens=30).cost == 20 * 10_000


def test_tables_say_what_sound_costs() -> None:
    (price,) = next(model for model in openai_table.PROVIDER.models if model.upstream == "gpt-audio-1.5").prices
    assert (price.input_usd, price.usd) == ("0.0000025", "0.00001")
    assert price.other_usd == {"audio_input": "0.000032", "audio_output": "0.000064"}
