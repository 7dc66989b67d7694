"""Chat models: tables of models, converted messages, self-hosted servers."""

from penstock.providers.chat_models import any_model, chat_models, chat_operation, messages_param
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Price, Source, refused

PAGE = Source("a page", "2026-11")
TABLE = """
    large            2    10   0.2  >200000  4  15  0.4
    small-1.5=small  0.5  2         until 2027-01-14
    other/model=m    1    3    from 2026-12-01  2  6
"""


def test_a_table_of_chat_models() -> None:
    large, small, other = chat_models("acme", PAGE, TABLE, priority=10)
    assert [(model.id, model.upstream) for model in (large, small, other)] == [
        ("acme/large", "large"), ("acme/small-1.5", "small"), ("other/model", "m"),
    ]  # fmt: skip
    assert small.prices == (Price(unit="token", usd="0.000002", input_usd="0.0000005", source=PAGE),)
    assert large.prices == (
        Price(unit="token", usd="0.000015", input_usd="0.000004", other_usd={"cached": "0.0000004"}, above=200_000,
              source=PAGE),
        Price(unit="token", usd="0.00001", input_usd="0.000002", other_usd={"cached": "0.0000002"}, source=PAGE),
    )  # fmt: skip
    assert [(price.usd, price.from_date) for price in other.prices] == [("0.000006", "2026-12-01"), ("0.000003", "")]
    assert [model.shutdown_date for model in (large, small, other)] == ["", "2027-01-14", ""]
    assert {model.priority for model in (large, small, other)} == {10}
    assert large.op is CHAT


def test_an_operation_differs_only_in_its_rows() -> None:
    op = chat_operation(*refused("logprobs"), priced_extras=frozenset({"plugins"}))
    assert (op.send, op.task, op.priced_extras) == (CHAT.send, "chat", frozenset({"plugins"}))
    assert [row.name for row in op.params] == ["logprobs"]


def test_messages_without_names_and_with_other_roles() -> None:
    messages = [{"role": "developer", "content": "Be brief.", "name": "x"}, {"role": "user", "content": "developer"}]
    row = messages_param(drop=["name"], roles={"developer": "system"})
    assert row.convert is not None
    assert row.convert(messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "developer"},
    ]
    assert messages[0]["role"] == "developer", "the caller's messages are unchanged, for the next provider"


def test_a_self_hosted_server_serves_any_model_at_no_cost() -> None:
    (model,) = any_model("acme", chat_operation(*refused("logprobs")))
    assert (model.id, model.upstream, model.op.send) == ("acme/*", "*", "POST /v1/chat/completions")
    assert [row.name for row in model.op.params] == ["logprobs"]
    assert [price.usd for price in model.prices] == ["0"]
