"""The page about providers, out of their own tables; `docs/generate.py` writes it."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from penstock.providers import discover
from penstock.providers.spec import Model, Operation, Param, Price, Provider
from penstock.upstream.catalog import ANY, modes

NAMES = {"frame": "`size`, `aspect_ratio`, `resolution`", "images": "`image`"}
UNITS = {"image": "an image", "megapixel": "a megapixel", "started_megapixel": "a started megapixel"}
UNITS |= {"second": "a second", "call": "a call", "token": "a million tokens"}
MILLION = Decimal(1_000_000)

INTRODUCTION = """A provider is on when its credential is in the environment; one that lives on your own machine, when
its address is. `penstock providers` shows what is on and what is missing, and `penstock providers check NAME` makes one
real call. [Configuration](configuration.md) says how to add models, prices and whole providers without code, and
[add a provider](add-a-provider.md) how to write one.

What happens to a field is one of: *passthrough* (sent as it is), *renamed* (sent under the provider's name),
*converted* (sent in the provider's form), *emulated* (done by the gateway where the provider cannot). Fields that a
model does not have are dropped, or refused where dropping them would change what was asked for. Fields that a table
does not name are sent as they are; [Atelier](atelier.md) refuses them. `GET /compat/v1/models?schema=true` tells the
same about a running gateway.

Prices are in US dollars and say where they come from. The first that applies counts; `penstock.toml` can set others.
"""


def page(note: str) -> str:
    known = sorted(discover(), key=lambda provider: provider.name.lower())
    index = "\n".join(line(provider) for provider in known)
    chapters = "\n\n".join(chapter(provider) for provider in known)
    heading = "| provider | switched on by | models | does |\n| --- | --- | --- | --- |"
    return f"# Providers\n\n{note}\n\n{INTRODUCTION}\n{heading}\n{index}\n\n{chapters}\n"


def line(provider: Provider) -> str:
    does = dict.fromkeys(mode for model in provider.models for mode in modes(model))
    count = len({model.id for model in provider.models})
    return f"| [{provider.name}](#{anchor(provider)}) | {switch(provider)} | {count} | {', '.join(does)} |"


def anchor(provider: Provider) -> str:
    return "".join(one for one in provider.name.lower() if one.isalnum() or one in " -_").replace(" ", "-")


def switch(provider: Provider) -> str:
    named = [name for name in (provider.base_url_env, provider.key_env) if name]
    return " and ".join(f"`{name}`" for name in named) or "always on"


def chapter(provider: Provider) -> str:
    docs = f" [Its own documentation]({provider.docs})." if provider.docs.startswith("http") else ""
    notes = list(dict.fromkeys(price.note for model in provider.models for price in model.prices if price.note))
    rows = "\n".join(row(model, notes) for model in provider.models)
    table = f"| model | its name there | does | price |\n| --- | --- | --- | --- |\n{rows}"
    numbered = [f"{mark(note, notes)}{note}".strip().rstrip(".") for note in notes]
    told = f"\n\nPrices: {'; '.join(numbered)}." if notes else ""
    parts = [f"## {provider.name}", f"`{provider.slug}`, {how(provider)}.{docs}", table + told, *operations(provider)]
    return "\n\n".join(parts)


def how(provider: Provider) -> str:
    return f"switched on by {switch(provider)}" if provider.key_env or provider.base_url_env else "always on"


def mark(note: str, notes: Sequence[str]) -> str:
    """Which source a price is from, where a provider's prices have several."""
    return f"[{notes.index(note) + 1}] " if len(notes) > 1 else ""


def row(model: Model, notes: Sequence[str]) -> str:
    upstream = "whatever is asked for" if model.upstream == ANY else f"`{model.upstream}`"
    sources = "".join(dict.fromkeys(mark(price.note, notes) for price in model.prices if price.note))
    return f"| `{model.id}` | {upstream} | {', '.join(modes(model))} | {prices(model)} {sources}".rstrip() + " |"


# -------------------------------------------------------------------------------------------------------------- prices


def prices(model: Model) -> str:
    return "; ".join(dict.fromkeys(money(price) for price in model.prices)) or "unknown"


def money(price: Price) -> str:
    many = MILLION if price.unit == "token" else Decimal(1)
    words = f"{plain(price.usd, many)} {UNITS[price.unit]}"
    if price.input_usd != "0":
        words += f", {plain(price.input_usd, many)} going in"
    words += "".join(f", {plain(usd, many)} {name}" for name, usd in price.other_usd.items())
    if price.each_usd != "0":
        words += f", {price.each_usd} for each output"
    conditions = [f"{name.removeprefix('sent.')} {value}" for name, value in price.when.items()]
    if price.above:
        conditions.append(f"more than {price.above} tokens in")
    return f"{words} ({', '.join(conditions)})" if conditions else words


def plain(usd: str, many: Decimal) -> str:
    text = f"{Decimal(usd) * many:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---------------------------------------------------------------------------------------------------------- parameters


def operations(provider: Provider) -> Iterator[str]:
    """One table for all models that take the same."""
    shared: dict[int, tuple[Operation, list[str]]] = {}
    for model in provider.models:
        op, ids = shared.setdefault(id(model.op), (model.op, []))
        if model.id not in ids:
            ids.append(model.id)
    tables: dict[tuple[str, str], list[str]] = {}
    for op, ids in shared.values():
        tables.setdefault((op.task, parameters(op)), []).extend(f"`{one}`" for one in ids)
    for (task, table), models in tables.items():
        yield f"### {provider.slug} {task}: {brief(models)}\n\n{table}"


def brief(models: list[str]) -> str:
    shown = list(dict.fromkeys(models))
    return ", ".join(shown) if len(shown) <= 4 else f"{', '.join(shown[:3])} and {len(shown) - 3} more"


def parameters(op: Operation) -> str:
    dropped = [name(one) for one in op.params if one.handling == "ignored"]
    refused = [name(one) for one in op.params if one.handling == "refused"]
    fixed = [f"`{one.to[0]}` as `{one.value}`" for one in op.params if one.handling == "fixed"]
    ours = [name(one) for one in op.params if one.handling == "emulated" and not one.to]
    rows = [one for one in op.params if one.to and one.handling != "fixed"]
    said = [f"| {name(one)} | {one.handling} | {target(one)} | {limits(one)} |" for one in rows]
    parts = ["| field | handling | there | limits |\n| --- | --- | --- | --- |\n" + "\n".join(said)] if said else []
    parts += [f"Emulated: {', '.join(ours)}."] if ours else []
    parts += [f"Dropped: {', '.join(dropped)}."] if dropped else []
    parts += [f"Refused: {', '.join(refused)}."] if refused else []
    parts += [f"Always sent: {', '.join(fixed)}."] if fixed else []
    if op.task == "chat":
        parts.append("Everything else as OpenAI has it.")
    return "\n\n".join(parts)


def name(one: Param) -> str:
    return NAMES.get(one.name, f"`{one.name}`")


def target(one: Param) -> str:
    return ", ".join(f"`{to}`" for to in one.to) or "not sent"


def limits(one: Param) -> str:
    said = ["required"] if one.required else []
    if one.one_of:
        said.append("one of " + ", ".join(f"`{value}`" for value in one.one_of))
    said += bounds(one)
    if one.max_length is not None:
        said.append(f"{one.max_length} characters at most")
    if one.max_items is not None:
        said.append(f"{one.max_items} at most")
    if one.default is not None:
        said.append(f"`{one.default}` unless said")
    return ", ".join(said)


def bounds(one: Param) -> list[str]:
    if one.name == "n":
        return [f"{one.high:g} in one call"] if one.high else []
    found: Mapping[str, Any] = {"from": one.low, "to": one.high}
    words = " ".join(f"{word} {value:g}" for word, value in found.items() if value is not None)
    return [words] if words else []
