"""OpenAI's models that listen."""

from decimal import Decimal

from penstock.providers.gpt_transcription import transcription_models


def test_each_model_has_its_price_by_the_minute() -> None:
    models = transcription_models({"gpt-transcribe": "", "whisper-1": "2027-02-26"})
    prices = {model.id: Decimal(model.prices[0].usd) * 60 for model in models}
    assert prices == {"gpt-transcribe": Decimal("0.0045"), "whisper-1": Decimal("0.006")}


def test_only_whisper_says_when_something_was_said_and_translates() -> None:
    models = transcription_models({"gpt-transcribe": "", "whisper-1": ""})
    timed = {
        (model.id, model.op.task)
        for model in models
        if model.op.transcription is not None and model.op.transcription.asked("segment")
    }
    assert timed == {("whisper-1", "transcription"), ("whisper-1", "translation")}


def test_days_of_shutdown_are_those_of_the_provider() -> None:
    """And it serves no others."""
    dates = {model.id: model.shutdown_date for model in transcription_models({"whisper-1": "2027-02-26"})}
    assert dates == {"whisper-1": "2027-02-26"}
