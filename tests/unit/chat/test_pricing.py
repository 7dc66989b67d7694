"""What a chat call may cost at most, and what it costs by reported or estimated usage."""

from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from typing import Any

import msgspec
import pytest

from penstock.chat.messages import ChatImage
from penstock.chat.normalise import Completion
from penstock.chat.pricing import Usage, _PromptDetails, estimated_usage, make_bill, max_cost, quote
from penstock.chat.request import ChatRequest
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Price
from penstock.upstream.token_prices import TokenPrices
from penstock.values import nanos

DEFAULT_OUTPUT_TOKENS = 1000


def priced_model(*prices: Price) -> TokenPrices:
    return TokenPrices.of(Model(id="lab/chat", upstream="chat", op=CHAT, prices=prices))


def chat_request(
    max_text_tokens: int, token_limit: int | None = None, choices: int = 1, images: int = 0
) -> ChatRequest:
    return ChatRequest(
        model="lab/chat",
        body={"messages": [{"role": "user", "content": "one two three"}]},
        extras={},
        stream=False,
        wants_usage=False,
        images=tuple(ChatImage(0, number, "data:image/png;base64,") for number in range(images)),
        max_text_tokens=max_text_tokens,
        prompt_bytes=40,
        token_limit=token_limit,
        choices=choices,
        size_bytes=0,
    )


PRICE = Price(unit="token", usd="0.000002", input_usd="0.000001", other_usd={"cached": "0.0000001"})


def test_the_maximum_counts_all_input_and_output_tokens() -> None:
    cases = [
        (chat_request(100), "0.0021"),
        (chat_request(100, 10), "0.00012"),
        (chat_request(100, 10, 3), "0.00016"),
    ]
    for chat, usd in cases:
        assert max_cost(priced_model(PRICE), chat, DEFAULT_OUTPUT_TOKENS) == nanos(usd)
        assert quote(priced_model(PRICE), chat, DEFAULT_OUTPUT_TOKENS).total == nanos(usd)


def test_a_price_per_call_is_added() -> None:
    price = Price(unit="token", usd="0.000002", input_usd="0.000001", each_usd="0.5")
    chat = chat_request(100, 10)
    assert max_cost(priced_model(price), chat, DEFAULT_OUTPUT_TOKENS) == nanos("0.50012")
    quoted = quote(priced_model(price), chat, DEFAULT_OUTPUT_TOKENS)
    assert quoted.total == nanos("0.50012")
    assert [(line.type, line.metric) for line in quoted.components] == [
        ("input", "token"),
        ("output", "token"),
        ("output", "output"),
    ]
    bill = make_bill(priced_model(price), Usage(prompt_tokens=100, completion_tokens=10))
    assert bill.cost == nanos("0.50012"), "what was quoted and reserved is charged"
    assert [line.metric for line in bill.lines] == ["input_token", "output_token", "output"]


def test_a_model_without_a_price_costs_nothing() -> None:
    chat = chat_request(100)
    assert max_cost(priced_model(), chat, DEFAULT_OUTPUT_TOKENS) == 0
    assert quote(priced_model(), chat, DEFAULT_OUTPUT_TOKENS).total == 0
    assert make_bill(priced_model(), Usage(prompt_tokens=5, completion_tokens=5)).cost == 0


def test_long_inputs_may_have_their_own_price() -> None:
    long_price = Price(unit="token", usd="0.000004", input_usd="0.000002", above=1000)
    model = priced_model(long_price, PRICE)
    assert make_bill(model, Usage(prompt_tokens=1000)).cost == nanos("0.001")
    assert make_bill(model, Usage(prompt_tokens=1001)).cost == nanos("0.002002")


def test_cached_tokens_have_their_own_price() -> None:
    usage = msgspec.convert({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}, Usage)
    assert make_bill(priced_model(PRICE), usage).cost == nanos("0.0000064")


def test_the_lines_of_a_bill_add_up_to_its_exact_cost() -> None:
    """Also for counts that make no sense, which a provider may report."""
    tiny = Price(unit="token", usd="0.00000000035", input_usd="0.00000000015", other_usd={"cached": "0.00000000005"})
    reported = [Usage(prompt_tokens=3, cost=0.0123456789), Usage(prompt_tokens=3, cost_in_usd_ticks=7)]
    counted = [
        Usage(input_tokens, output_tokens, total_tokens, _PromptDetails(cached_tokens))
        for input_tokens, output_tokens in product((None, 0, 1, 7, 1003, -5), repeat=2)
        for total_tokens in (None, 0, 2000)
        for cached_tokens in (None, 0, 3, 2000, -4)
    ]
    for usage, price in product([*reported, *counted], (tiny, PRICE)):
        bill = make_bill(priced_model(price), usage)
        assert sum(line.amount for line in bill.lines) == bill.cost == expected_cost(price, usage), usage
        assert bill.tokens == {"input": usage.input, "cached": usage.cached, "output": usage.output}


def expected_cost(price: Price, usage: Usage) -> int:
    """The cost in nano-dollars, computed with decimals."""
    usd = usage.cost_usd
    if usd is None:
        cached_usd = Decimal(price.other_usd.get("cached", price.input_usd))
        usd = Decimal(price.input_usd) * (usage.input - usage.cached) + cached_usd * usage.cached
        usd += Decimal(price.usd) * usage.output
    return int((usd * 10**9).to_integral_value(ROUND_HALF_UP))


def test_a_cost_is_rounded_once_half_up() -> None:
    price = Price(unit="token", usd="0.0000000005", input_usd="0.00000000025")
    assert make_bill(priced_model(price), Usage(prompt_tokens=1)).cost == 0
    assert make_bill(priced_model(price), Usage(completion_tokens=1)).cost == 1
    assert make_bill(priced_model(price), Usage(prompt_tokens=2, completion_tokens=1)).cost == 1


def test_a_reported_cost_wins_over_the_price() -> None:
    assert make_bill(priced_model(PRICE), Usage(prompt_tokens=1000, cost=0.25)).cost == nanos("0.25")


def test_usage_is_estimated_by_sizes() -> None:
    by_events = estimated_usage(chat_request(100), priced_model(PRICE), output_tokens=7)
    assert (by_events.input, by_events.output) == (10, 7)
    by_bytes = estimated_usage(chat_request(100, images=2), priced_model(PRICE), output_bytes=40)
    assert (by_bytes.input, by_bytes.output) == (10 + 2000, 10)


def test_images_are_priced_as_the_model_counts_them() -> None:
    chat = chat_request(100, 10, images=2)
    few = msgspec.structs.replace(priced_model(PRICE), max_image_tokens=1000)
    assert max_cost(few, chat, DEFAULT_OUTPUT_TOKENS) == nanos("0.00212")
    assert quote(few, chat, DEFAULT_OUTPUT_TOKENS).total == nanos("0.00212")
    assert max_cost(priced_model(PRICE), chat, DEFAULT_OUTPUT_TOKENS) > nanos("0.05")


# ---------------------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("reported", "output"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, 3),
        (
            {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 50},
            43,
        ),  # only the total counts reasoning
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": None}, 3),
        ({"prompt_tokens": 7}, 0),
    ],
)
def test_reasoning_tokens_are_output(reported: dict[str, Any], output: int) -> None:
    assert msgspec.convert(reported, Usage).output == output


@pytest.mark.parametrize(
    ("reported", "cached"),
    [({}, 0), ({"cached_tokens": None}, 0), ({"cached_tokens": 5}, 5), ({"cached_tokens": 5000}, 7)],
)
def test_cached_tokens_are_part_of_the_input(reported: dict[str, Any], cached: int) -> None:
    assert msgspec.convert({"prompt_tokens": 7, "prompt_tokens_details": reported}, Usage).cached == cached


@pytest.mark.parametrize(
    ("reported", "usd"),
    [
        ({"cost": 0.00014}, "0.00014"),
        ({"cost_in_usd_ticks": 37_756_000}, "0.0037756"),
        ({"cost": 1e308}, None),
        ({"cost": -1}, None),
        ({}, None),
    ],
)
def test_a_reported_cost_is_used_if_it_is_plausible(reported: dict[str, Any], usd: str | None) -> None:
    assert msgspec.convert(reported, Usage).cost_usd == (Decimal(usd) if usd else None)


@pytest.mark.parametrize(
    ("is_byok", "upstream", "usd"),
    [(True, 0.25, "0.26"), (True, None, "0.01"), (False, 0.25, "0.01"), (None, 0.25, "0.01"), (True, -1, None)],
)
def test_what_a_provider_behind_a_router_bills_the_operator_is_charged(
    is_byok: bool | None, upstream: float | None, usd: str | None
) -> None:
    """With the operator's own key of that provider, the cost that OpenRouter reports is only its fee."""
    reported = {"cost": 0.01, "is_byok": is_byok, "cost_details": {"upstream_inference_cost": upstream}}
    assert msgspec.convert(reported, Usage).cost_usd == (None if usd is None else Decimal(usd))


@pytest.mark.parametrize("odd", [{"total_cost": 0.005}, "0.005", [], True])
def test_a_cost_that_is_not_a_number_is_left_out(odd: Any) -> None:
    """Servers invent fields: the response is good all the same, and is charged by its tokens."""
    for fields in (
        {"cost": odd},
        {"cost_in_usd_ticks": odd},
        {"cost": 0.01, "is_byok": True, "cost_details": odd},
        {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": odd}},
    ):
        reported = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, **fields}
        read = msgspec.json.decode(msgspec.json.encode({"choices": [], "usage": reported}), type=Completion).usage
        assert read is not None
        assert (read.input, read.output) == (3, 4)
        assert read.cost_usd == (Decimal("0.01") if "is_byok" in fields else None), fields
