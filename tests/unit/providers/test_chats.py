"""Chat in OpenAI's shape: tables of models, messages as vendors read them, servers of one's own."""

from penstock.providers.chats import chats, heard, served, talk
from penstock.providers.compatible import CHAT
from penstock.providers.spec import Price, refused

TABLE = """
    large            2    10   0.2  >200000  4  15  0.4
    small-1.5=small  0.5  2
    other/model=m    1    3
"""


def test_table_of_chats() -> None:
    large, small, other = chats("acme", "a page, 2026-11", TABLE, priority=10)
    assert [(one.id, one.upstream) for one in (large, small, other)] == [
        ("acme/large", "large"), ("acme/small-1.5", "small"), ("other/model", "m"),
    ]  # fmt: skip
    note = "a page, 2026-11"
    assert small.prices == (Price(unit="token", usd="0.000002", input_usd="0.0000005", note=note),)
    assert large.prices == (
        Price(unit="token", usd="0.000015", input_usd="0.000004", other_usd={"cached": "0.0000004"}, above=200_000,
              note=note),
        Price(unit="token", usd="0.00001", input_usd="0.000002", other_usd={"cached": "0.0000002"}, note=note),
    )  # fmt: skip
    assert {one.priority for one in (large, small, other)} == {10}
    assert large.op is CHAT


def test_chat_differs_only_where_it_says_so() -> None:
    op = talk(*refused("logprobs"), priced_extras=frozenset({"plugins"}))
    assert (op.send, op.task, op.priced_extras) == (CHAT.send, "chat", frozenset({"plugins"}))
    assert [row.name for row in op.params] == ["logprobs"]


def test_messages_are_heard_without_names_and_in_other_roles() -> None:
    said = [{"role": "developer", "content": "Be brief.", "name": "x"}, {"role": "user", "content": "developer"}]
    row = heard("name", developer="system")
    assert row.convert is not None
    assert row.convert(said) == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "developer"}]
    assert said[0]["role"] == "developer", "what the caller said stays as it is, for the next provider"


def test_servers_of_ones_own_take_any_model_for_nothing() -> None:
    (any_model,) = served("acme", talk(*refused("logprobs")))
    assert (any_model.id, any_model.upstream, any_model.op.send) == ("acme/*", "*", "POST /v1/chat/completions")
    assert [row.name for row in any_model.op.params] == ["logprobs"]
    assert [price.usd for price in any_model.prices] == ["0"]
