"""Providers, models and prices that an operator describes in penstock.toml instead of code."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, get_args
from urllib.parse import urlsplit

from penstock.providers.compatible import OPERATIONS, error_kind, error_text
from penstock.providers.spec import Model, Price, Provider, Task, Unit, bearer

_PROVIDER_WORDS = {"speaks", "base_url", "key_env", "models", "name", "priority"}
_MODEL_WORDS = {"id", "upstream", "task", "price", "name", "description", "priority", "weight", "aliases", "enabled"}
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


def _changed(provider: Provider, table: Mapping[str, Any]) -> Provider:
    where = f"[providers.{provider.slug}]"
    _only(where, table, {"base_url", "key_env", "models"})
    models = [_model(where, provider.slug, one) for one in table.get("models", ())]
    return replace(
        provider,
        base_url=_address(where, table["base_url"]) if "base_url" in table else provider.base_url,
        key=table.get("key_env", provider.key),
        models=(*provider.models, *models),
    )


def _described(slug: str, table: Mapping[str, Any]) -> Provider:
    where = f"[providers.{slug}]"
    _only(where, table, _PROVIDER_WORDS)
    if table.get("speaks") != "openai":
        raise Misconfigured(f'{where} must say speaks = "openai"')
    if "base_url" not in table:
        raise Misconfigured(f"{where} needs a base_url")
    if not slug.replace("-", "").replace("_", "").isalnum() or slug != slug.lower():
        raise Misconfigured(f"{where} must be named in lower-case letters, digits, - and _")
    return Provider(
        slug=slug,
        name=table.get("name", slug),
        docs="",
        base_url=_address(where, table["base_url"]),
        key=table.get("key_env"),
        auth=bearer if table.get("key_env") else lambda key: {},
        models=tuple(
            replace(_model(where, slug, one), priority=one.get("priority", table.get("priority", 0)))
            for one in table.get("models", ())
        ),
        error=error_text,
        kind=error_kind,
    )


def _model(where: str, slug: str, table: Mapping[str, Any]) -> Model:
    here = f"{where} model {table.get('id', '?')}"
    _only(here, table, _MODEL_WORDS)
    task: Task = table.get("task", "")
    if task not in OPERATIONS:
        raise Misconfigured(f"{here}: task must be one of {', '.join(OPERATIONS)}")
    if "id" not in table:
        raise Misconfigured(f"{where}: a model needs an id")
    return Model(
        id=table["id"],
        upstream=table.get("upstream", table["id"].removeprefix(f"{slug}/")),
        op=OPERATIONS[task],
        prices=_prices(here, table.get("price")),
        name=table.get("name", ""),
        description=table.get("description", ""),
        priority=int(table.get("priority", 0)),
        weight=_weight(here, table.get("weight", 1)),
        aliases=tuple(table.get("aliases", ())),
        enabled=bool(table.get("enabled", True)),
    )


def changes(models: Mapping[str, Model], written: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """[models."id"] tables: what an operator changes about a model that exists already."""
    for name, table in written.items():
        where = f'[models."{name}"]'
        if name not in models:
            raise Misconfigured(f"{where} changes a model that no provider here serves")
        _only(where, table, _CHANGE_WORDS)
        change = {word: table[word] for word in ("priority", "enabled") if word in table}
        if "weight" in table:
            change["weight"] = _weight(where, table["weight"])
        if "aliases" in table:
            change["aliases"] = tuple(table["aliases"])
        if "price" in table:
            change["prices"] = _prices(where, table["price"])
        yield name, change


def _prices(where: str, table: Any) -> tuple[Price, ...]:
    """One table or a list of them, each perhaps with `when`; none at all is an unknown price."""
    if table is None:
        return ()
    return tuple(_price(where, row) for row in (table if isinstance(table, list) else [table]))


def _price(where: str, row: Mapping[str, Any]) -> Price:
    _only(f"{where}, price", row, {"unit", "usd", "output_usd", "input_usd", "each_usd", "when", "most", "note"})
    unit: Unit = row.get("unit", "")
    if unit not in get_args(Unit):
        raise Misconfigured(f"{where}: price unit must be one of {', '.join(get_args(Unit))}")
    return Price(
        unit=unit,
        usd=_amount(where, row.get("output_usd", row.get("usd", "0"))),
        input_usd=_amount(where, row.get("input_usd", "0")),
        each_usd=_amount(where, row.get("each_usd", "0")),
        when=dict(row.get("when", {})),
        most=int(row.get("most", 0)),
        note=row.get("note", "penstock.toml"),
    )


def _amount(where: str, text: Any) -> str:
    try:
        if isinstance(text, float) or Decimal(text) < 0:
            raise InvalidOperation
    except (InvalidOperation, TypeError):
        raise Misconfigured(f'{where}: write prices as text, such as "0.04"') from None
    return str(text)


def _weight(where: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise Misconfigured(f"{where}: weight must be a whole number from 1")
    return value


def _address(where: str, text: Any) -> str:
    parts = urlsplit(str(text))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise Misconfigured(f"{where}: base_url must be http(s)://host[:port]/path")
    return str(text).rstrip("/")


def _only(where: str, table: Any, words: set[str]) -> None:
    if not isinstance(table, Mapping):
        raise Misconfigured(f"{where} must be a table")
    if unknown := sorted(set(table) - words):
        raise Misconfigured(f"{where} has unknown words: {', '.join(unknown)}")
