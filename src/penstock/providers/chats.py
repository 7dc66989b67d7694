"""Chat models of vendors that took up OpenAI's shape: their tables, and where they differ from it."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.providers.compatible import CHAT
from penstock.providers.spec import Model, Operation, Param, Price, converted, renamed


def heard(*without: str, **roles: str) -> Param:
    """A chat's messages as a vendor reads them: less some of their fields, and with its own word for who speaks."""

    def heard_as(messages: list[Any]) -> list[Any]:
        return [
            {
                name: roles.get(value, value) if name == "role" else value
                for name, value in message.items()
                if name not in without
            }
            for message in messages
        ]

    return converted("messages", to="messages", convert=heard_as)


# What vendors other than OpenAI never took up: instructions from a developer are the system's to them.
ONE_VOICE = heard(developer="system")
ONE_LIMIT = renamed("max_completion_tokens", to="max_tokens")


def talk(*rows: Param, finish: Mapping[bytes, bytes] | None = None, **more: Any) -> Operation:
    """A vendor's chat, where it differs from OpenAI's; `finish` has its words for why an answer ended, and ours."""
    return replace(CHAT, params=rows, settings={"finish": finish} if finish else {}, **more)


def served(slug: str, op: Operation) -> tuple[Model, ...]:
    """Whatever models a server on one's own machine has, by the names they have there, for nothing."""
    free = Price(unit="token", usd="0", note="your own hardware")
    return (Model(id=f"{slug}/*", upstream="*", op=replace(op, send="POST /v1/chat/completions"), prices=(free,)),)


def chats(vendor: str, note: str, table: str, op: Operation = CHAT, priority: int = 0) -> tuple[Model, ...]:
    """Chat models, one a line: name, and after `=` the vendor's own if that is another; dollars per million tokens in,
    out and, where there is a discount, remembered. After `>`: from how many tokens in on these cost something else.
    """
    return tuple(_chat(vendor, note, line, op, priority) for line in table.strip().splitlines())


def _chat(vendor: str, note: str, line: str, op: Operation, priority: int) -> Model:
    usual, *longer = line.split(">")
    names, *usd = usual.split()
    name, _, upstream = names.partition("=")
    prices = [_tokens(note, *usd)]
    for above, *dearer in map(str.split, longer):
        prices.insert(0, replace(_tokens(note, *dearer), above=int(above)))
    public = name if "/" in name else f"{vendor}/{name}"
    return Model(id=public, upstream=upstream or name, op=op, prices=tuple(prices), priority=priority)


def _tokens(note: str, asked: str, output: str, cached: str = "") -> Price:
    other = {"cached": _each(cached)} if cached else {}
    return Price(unit="token", usd=_each(output), input_usd=_each(asked), other_usd=other, note=note)


def _each(per_million: str) -> str:
    return f"{Decimal(per_million) / 1_000_000:f}"
