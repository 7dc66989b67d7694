"""Turns: what a call may say about texts that are spoken one after the other, and what becomes of them."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.speech.turns import TURNS_MAX, Turn, plain_turns, read_turns
from tests import sounds
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.speech.speech_calls import sound_of, speak

TURNS = [{"text": "How are you?", "voice": "alloy"}, {"text": "Well.", "voice": {"id": "verse"}}, {"text": "Good."}]
CHARACTERS = 12 + 5 + 5


def test_a_text_is_one_turn() -> None:
    assert read_turns("Hello.") == (Turn("Hello."),)


def test_turns_are_read_with_what_is_their_own() -> None:
    turns = read_turns([*TURNS, {"text": "Hush.", "voice": None, "instructions": "Whisper."}])
    assert turns == (
        Turn("How are you?", "alloy"),
        Turn("Well.", "verse"),
        Turn("Good."),
        Turn("Hush.", None, "Whisper."),
    )
    assert plain_turns(turns)[0] == Turn("How are you?")


@pytest.mark.parametrize(
    ("written", "param"),
    [
        ([], "input"),
        ([{"text": "a"}] * (TURNS_MAX + 1), "input"),
        ([{"text": "a" * 60_000}, {"text": "a" * 60_000}], "input"),
        (["Hello."], "input[0]"),
        ([{"text": "a"}, {"text": "b", "speed": 2}], "input[1].speed"),
        ([{"voice": "alloy"}], "input[0].text"),
        ([{"text": " "}], "input[0].text"),
        ([{"text": 3}], "input[0].text"),
        ([{"text": "a", "voice": 3}], "input[0].voice"),
        ([{"text": "a", "instructions": 3}], "input[0].instructions"),
        ([{"text": "a", "instructions": "a" * 5000}], "input[0].instructions"),
    ],
)
def test_a_bad_turn_is_refused_with_its_place(written: list[Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_turns(written)
    assert refused.value.param == param
    assert f"`{param.removesuffix('.speed')}`" in refused.value.message


async def test_turns_are_spoken_in_their_order_and_charged_together(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        available, _ = await running.money()
        response = await speak(running, input=TURNS, voice="verse", response_format="pcm")
        heard = await sound_of(response)
        assert sounds.seconds_of(heard, "pcm") == pytest.approx(CHARACTERS / 15, rel=0.03)
        asked = [call.fields for call in running.lab.speeches.received]
        assert [(each["input"], each["voice"]) for each in asked] == [
            ("How are you?", "alloy"),
            ("Well.", "verse"),
            ("Good.", "verse"),
        ]
        assert response.headers["x-service-voice"] == "alloy"
        assert (await last_record(running))["cost"] == CHARACTERS * 10_000
        assert await running.money() == (available - CHARACTERS * 10_000, 0)


@sqlite_only
async def test_turns_that_are_kept_have_their_texts_as_the_prompt(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        begun = await speak(running, input=TURNS, headers={"prefer": "respond-async"})
        assert begun.status == 202
        assert begun.json["prompt"] == "How are you?\nWell.\nGood."
        await running.wait_for_request(begun.json["id"])
        assert [call.fields["voice"] for call in running.lab.speeches.received] == ["alloy", "verse", "alloy"]


@sqlite_only
async def test_a_mock_speaks_all_turns_in_its_own_voice(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        turns = [{"text": "One.", "voice": "somebody"}, {"text": "Two."}]
        mock = {"x-service-replay": "mock"}
        response = await speak(running, input=turns, headers=mock)
        assert sounds.seconds_of(await sound_of(response)) > 0.5
        kept = await speak(running, input=turns, headers={**mock, "prefer": "respond-async"})
        record = await running.wait_for_request(kept.json["id"])
        assert (record["status"], record["cost"]) == ("completed", 0)
        assert running.lab.submits == 0


@sqlite_only
async def test_a_bad_turn_costs_nothing(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        before = await running.money()
        with pytest.raises(InvalidRequest):
            await speak(running, input=[{"text": ""}])
        assert (await running.money(), running.lab.submits) == (before, 0)
