"""Providers, models and prices that an operator describes in penstock.toml instead of code."""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

from penstock.providers.compatible import OPERATIONS, error_kind, error_text
from penstock.providers.spec import Model, Price, Provider, Unit, bearer

_PROVIDER_WORDS = {
    "speaks", "base_url", "key_env", "models", "name", "priority", "callback_field", "callback_key_env",
}  # fmt: skip
_MODEL_WORDS = {"id", "upstream", "task", "price", "name", "description", "priority", "weight", "aliases", "enabled"}
_PRICE_WORDS = set("unit usd output_usd input_usd each_usd other_usd when above most note".split())
_CHANGE_WORDS = {"price", "priority", "weight", "aliases", "enabled"}


class Misconfigured(ValueError):
    """penstock.toml says something that cannot be meant; names the place."""


def providers(known: Mapping[str, Provider], written: Mapping[str, Any]) -> Iterator[Provider]:
    """Known providers with the operator's changes, then the operator's own."""
    for slug, provider in known.items():
        yield _changed(provider, written[slug]) if slug in written else provider
    for slug, table in written.items():
        if slug not in known:
            yield _described(slug, table)


def _changed(provider: Provider, written: Any) -> Provider:
    where = f"[providers.{provider.slug}]"
    table = _only(where, written, {"base_url", "key_env", "models"})
    if provider.local and "base_url" in table:
        raise Misconfigured(f"{where} answers inside the gateway and has no base_url")
    return replace(
        provider,
        base_url=_address(where, table["base_url"]) if "base_url" in table else provider.base_url,
        base_url_env=None if "base_url" in table else provider.base_url_env,  # an address here is as good
        key_env=_word(where, table, "key_env", provider.key_env),
        models=(*provider.models, *_models(where, provider.slug, table, 0)),
    )


def _described(slug: str, written: Any) -> Provider:
    where = f"[providers.{slug}]"
    table = _only(where, written, _PROVIDER_WORDS)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", slug) or slug == "router":
        raise Misconfigured(f"{where} must be named in lower-case letters, digits, - and _, and not router")
    if table.get("speaks") != "openai":
        raise Misconfigured(f'{where} must say speaks = "openai"')
    if "base_url" not in table:
        raise Misconfigured(f"{where} needs a base_url")
    key = _word(where, table, "key_env", None)
    return Provider(
        slug=slug,
        name=_word(where, table, "name", slug) or slug,
        docs="",
        base_url=_address(where, table["base_url"]),
        key_env=key,
        auth=bearer if key else lambda _: {},
        models=_models(where, slug, table, _whole(where, table, "priority", 0)),
        error_message=error_text,
        failure_kind=error_kind,
        callback_key_env=_word(where, table, "callback_key_env", None),
    )


def _models(where: str, slug: str, table: Mapping[str, Any], priority: int) -> tuple[Model, ...]:
    written = table.get("models", [])
    if not isinstance(written, list):
        raise Misconfigured(f"{where}: models must be a list of tables")
    models = tuple(_model(where, slug, one, priority) for one in written)
    if callback_field := _word(where, table, "callback_field", None):
        models = tuple(replace(one, op=replace(one.op, callback_field=callback_field)) for one in models)
    names = [(model.id, model.op.task) for model in models]
    if twice := sorted({f"{name} ({task})" for name, task in names if names.count((name, task)) > 1}):
        raise Misconfigured(f"{where}: described twice: {', '.join(twice)}")
    return models


def _model(where: str, slug: str, written: Any, priority: int) -> Model:
    table = _only(f"{where}, a model", written, _MODEL_WORDS)
    name = _word(where, table, "id", "")
    if not name:
        raise Misconfigured(f"{where}: a model needs an id")
    here = f"{where} model {name}"
    task = table.get("task", "")
    if task not in OPERATIONS:
        raise Misconfigured(f"{here}: task must be one of {', '.join(OPERATIONS)}")
    change = {"prices": (), "priority": priority, **_change(here, table)}
    if task != "chat" and any(price.unit == "token" and not price.max_tokens for price in change["prices"]):
        raise Misconfigured(f"{here}: a price by the token needs `most`, the tokens one output can use")
    return Model(
        id=name,
        upstream=_word(here, table, "upstream", None) or name.removeprefix(f"{slug}/"),
        op=OPERATIONS[task],
        name=_word(here, table, "name", "") or "",
        description=_word(here, table, "description", "") or "",
        **change,
    )


def changes(known: Container[str], written: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """[models."id"] tables: what an operator changes about a model that exists already."""
    for name, table in written.items():
        where = f'[models."{name}"]'
        if name not in known:
            raise Misconfigured(f"{where} changes a model that no provider here has")
        yield name, _change(where, _only(where, table, _CHANGE_WORDS))


def _change(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """What both tables can say, as fields of a Model; only what was said."""
    change: dict[str, Any] = {}
    if "priority" in table:
        change["priority"] = _whole(where, table, "priority", 0)
    if "weight" in table:
        change["weight"] = _whole(where, table, "weight", 1, low=1)
    if "enabled" in table:
        change["enabled"] = _flag(where, table["enabled"])
    if "aliases" in table:
        change["aliases"] = _words(where, table["aliases"])
    if "price" in table:
        change["prices"] = _prices(where, table["price"])
    return change


# --------------------------------------------------------------------------------------------------------------- prices


def _prices(where: str, written: Any) -> tuple[Price, ...]:
    """One table, or a list of them of which the first that applies counts; none at all is an unknown price."""
    prices = tuple(_price(where, row) for row in (written if isinstance(written, list) else [written]))
    if prices and (prices[-1].when or prices[-1].above):
        raise Misconfigured(f"{where}: the last price must be one without `when` and `above`, for all other cases")
    return prices


def _price(where: str, written: Any) -> Price:
    here = f"{where}, price"
    row = _only(here, written, _PRICE_WORDS)
    unit: Unit = row.get("unit", "")
    if unit not in get_args(Unit):
        raise Misconfigured(f"{here}: unit must be one of {', '.join(get_args(Unit))}")
    if ("usd" in row) == ("output_usd" in row):
        raise Misconfigured(f"{here} needs usd or output_usd")
    for name in ("when", "other_usd"):
        if not isinstance(row.get(name, {}), Mapping):
            raise Misconfigured(f"{here}: {name} must be a table")
    return Price(
        unit=unit,
        usd=_amount(here, row.get("usd", row.get("output_usd"))),
        input_usd=_amount(here, row.get("input_usd", "0")),
        each_usd=_amount(here, row.get("each_usd", "0")),
        other_usd={name: _amount(here, usd) for name, usd in row.get("other_usd", {}).items()},
        when=dict(row.get("when", {})),
        above=_whole(here, row, "above", 0),
        max_tokens=_whole(here, row, "most", 0),
        note=_word(here, row, "note", "penstock.toml") or "",
    )


def _amount(where: str, written: Any) -> str:
    """Text, because 0.04 is not a number that a computer can hold."""
    try:
        fits = isinstance(written, str | int) and not isinstance(written, bool) and 0 <= Decimal(written) < 10**9
    except InvalidOperation:
        fits = False
    if not fits:
        raise Misconfigured(f'{where}: write amounts as text, such as "0.04"')
    return str(written)


# --------------------------------------------------------------------------------------------------------------- values


def _word(where: str, table: Mapping[str, Any], name: str, default: str | None) -> str | None:
    if name not in table:
        return default
    value = table[name]
    if not isinstance(value, str) or not value.strip():
        raise Misconfigured(f"{where}: {name} must be text")
    return value


def _words(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise Misconfigured(f"{where}: aliases must be a list of names")
    return tuple(value)


def _whole(where: str, table: Mapping[str, Any], name: str, default: int, low: int = 0) -> int:
    value = table.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise Misconfigured(f"{where}: {name} must be a whole number from {low}")
    return value


def _flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misconfigured(f"{where}: enabled must be true or false")
    return value


def _address(where: str, text: Any) -> str:
    """A host that credentials may be sent to; nothing in it is ever filled in."""
    if not re.fullmatch(
        r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#{}\\]*)?", str(text)
    ):
        raise Misconfigured(f"{where}: base_url must be http(s)://host[:port]/path")
    return str(text).rstrip("/")


def _only(where: str, table: Any, words: set[str]) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise Misconfigured(f"{where} must be a table")
    if unknown := sorted(set(table) - words):
        raise Misconfigured(f"{where} has unknown words: {', '.join(unknown)}")
    return table
