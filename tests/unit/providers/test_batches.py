"""What calls cost in a provider's batch."""

from penstock.providers.batches import ChatBatches
from penstock.providers.openai import BATCHES, PROVIDER
from penstock.providers.spec import Price, Source

HALF = ChatBatches(price_percent=50, source=Source("a list of prices", "2026-01-01"))


def test_every_part_of_a_price_is_reduced() -> None:
    usual = Price(
        unit="token",
        usd="0.000015",
        input_usd="0.0000025",
        each_usd="0.01",
        other_usd={"cached": "0.00000025"},
        above=9,
    )
    (price,) = HALF.prices((usual,))
    assert (price.usd, price.input_usd, price.each_usd, price.other_usd["cached"], price.above) == (
        "0.0000075",
        "0.00000125",
        "0.005",
        "0.000000125",
        9,
    )
    assert price.source == HALF.source


def test_openais_chats_of_text_have_batches_and_those_of_sound_have_none() -> None:
    found = {model.upstream: model.op.batches for model in PROVIDER.models if model.op.task == "chat"}
    assert (found["gpt-6-sol"], found["gpt-audio-1.5"]) == (BATCHES, None)
