"""Build the pages about providers from their tables; `docs/generate.py` writes them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.fields import number_text
from penstock.models.catalog import ANY
from penstock.models.description import modes, shown_prices
from penstock.providers import discover
from penstock.providers.prices import SENT
from penstock.providers.row_names import MADE_BY_GATEWAY, row_words
from penstock.providers.spec import Model, Operation, Param, Price, Provider, Source, Speech, Transcription
from penstock.providers.transcription import DETAILS
from penstock.values import INPUT_VIDEOS

CONDITIONS = {"input_video": "from a video"}
UNITS = {"image": "an image", "megapixel": "a megapixel", "started_megapixel": "a started megapixel"}
UNITS |= {"second": "a second", "call": "a call", "token": "a million tokens", "compute_second": "a compute second"}
UNITS |= {"frame": "a frame", "megapixel_second": "a megapixel and second"}
UNITS |= {
    "video_megapixel": "a megapixel of all frames",
    "character": "a million characters",
    "byte": "a million bytes",
}
MILLION = Decimal(1_000_000)
PIXELS_OF_1024 = Decimal("1.048576")  # 1024 x 1024 pixels in megapixels; some providers state prices for them
SMALLEST_A_SECOND = Decimal("0.0005")
LONGEST_AMOUNT = 10  # characters
SIGNS_OF_LIFE = Path(__file__).parent.parent / "tests" / "providers" / "signs_of_life.txt"
COMPARED = Path(__file__).parent.parent / "tests" / "providers" / "compared.json"

INTRODUCTION = """A provider is on if its credential is in the environment; a self-hosted one, if its URL is.
`penstock providers` shows which are on and what is missing for the others, and `penstock providers check NAME` makes
one real call. Each has a page with its models, their parameters and their prices.

Of fal, Replicate and OpenRouter [any model](any-model.md) can be called, also one that is not listed.
[Configuration](configuration.md) says how to add models, prices and whole providers without code, and
[add a provider](add-a-provider.md) how to write one.
"""

EXPLANATION = """## How to read the pages of providers

What happens to a field: *passthrough* (sent unchanged), *renamed* (sent under the provider's name), *converted* (sent
in the provider's format), *emulated* (done by the gateway, because the provider cannot). Fields that a model does not
have are ignored, or refused if the result would not be what was asked for. Fields that are not in a table are sent
unchanged; [Atelier](atelier.md) refuses them. `GET /compat/v1/models?schema=true` returns the same for a running
gateway.

Prices are in US dollars, each with its source and the date of the source. *Second-hand* prices are what others recorded
of the provider's prices; the others are the provider's own words, or a copy of them. The first price that applies
counts; `penstock.toml` can set others. *From* is the first day, in UTC, of a price that has been announced; a request
that was accepted before keeps the old one, also if it ends later. *Until* is the day on which the provider shuts a
model down, if it has announced one.
"""

READING = "[How to read this page](../providers.md#how-to-read-the-pages-of-providers)."

PROOF = """## What proves the requests

The tests build every kind of request that the tables of the providers allow, for each model, number of input images,
shape, duration, quality and choice, and compare it with a description that nobody here wrote: the types in the
provider's own client library, or the OpenAPI document that comes with Comfy's command line. Where there is neither,
it is compared with pages of documentation, the provider's own or those of Comfy's router: their names, types and
limits were written down by hand on 2026-11-18, in [pages.txt](../tests/providers/pages.txt), apart from the tables.
Unknown fields, wrong values and missing fields fail the test. What no description covers is in the last column: its
requests follow the provider's documentation, and nothing else confirms them; [a
recording](add-a-provider.md#try-it-with-the-real-provider) of a real call would. Chat is not in this list: its
requests are OpenAI's.
"""

NOT_DESCRIBED = """Descriptions of the others were looked for on 2026-11-16 and 2026-11-18, in PyPI, npm, stored copies
of documentation and public repositories:

- AUTOMATIC1111, ComfyUI and LocalAI are servers of your own. The simulation of the first is tried with a client that
  others wrote, `webuiapi`, and that of LocalAI with OpenAI's; `make test-servers` sends requests to a real ComfyUI.
- Leonardo: `leonardo-ai-sdk` 7.0.0 (PyPI) and `@leonardo-ai/sdk` 4.21.3 (npm) do not have the newer endpoint for
  images, and its pages about the models describe the older one.
- Microsoft's MAI images and FLUX.2 on Azure: no page of Microsoft with their fields was found.
- Kling 4 at Kling: Comfy's router describes the fields of videos that begin with an image. Those of videos from a
  text, and both paths, were not found; they are those of `kling-3-turbo`, which has the same API. So `kling-4` is
  tried at fal and WaveSpeed first.
- FLUX 3 Image klein: Vercel's list of models has its name, its price and its five resolutions, which are those of
  `flux-3-image`. A page with its fields was not found.
- Of the other models in the last column, among them those of fal, Replicate and WaveSpeed, no page could be read to its
  end.
"""

ALIVE = """## What shows that a provider is there

Nobody called the providers to write their tables. Each was last seen on this day, by this witness:
"""

NOT_OFFERED = """## What is not offered

Models that people ask for and of which too little was found on 2026-11-16 and 2026-11-18, in the documentation of the
providers and of resellers, in client libraries, in Comfy's documents and in public repositories:

- Kling 4 Flash: of WaveSpeed's the fields and the price were found, but not the path; of Kling's nothing. References
  and videos as inputs of Kling 4 at Kling: Comfy's router describes them, but the path for them was not found.
- FLUX 3 Max: a reseller names it and its prices, but Black Forest Labs' name for it and its fields were not found. If
  the fields are those of `flux-3-video`, [`like`](configuration.md#further-models-of-a-known-provider) offers it.
- Videos as inputs at Together: its client library describes `source_video`, `reference_videos` and `frame_videos`,
  but what they cost was not found.

One reseller says that Alibaba shut down Wan 2.6 on 2026-10-14, so its table has that day; another one still
sells it, and no notice of Alibaba's names it.

Amazon shut down Nova Canvas and Nova Reel on 2026-09-30, Google has shut down Imagen, and Reve ended its API on
2026-08-14, as ComfyUI and LLM Gateway say: nobody can offer them.
"""


def index_page(note: str) -> str:
    """The page that lists all providers."""
    known = sorted(discover(), key=lambda provider: provider.name.lower())
    index = "\n".join(line(provider) for provider in known)
    heading = "| provider | switched on by | models | does |\n| --- | --- | --- | --- |"
    parts = (
        f"# Providers\n\n{note}",
        f"{INTRODUCTION}\n{heading}\n{index}\n\n{EXPLANATION}",
        proof(known),
        alive(known),
        NOT_OFFERED,
    )
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def proof(known: Sequence[Provider]) -> str:
    """What the requests of each provider are compared with in the tests."""
    record = json.loads(COMPARED.read_text())
    lines = ["| provider | compared with | not described |", "| --- | --- | --- |"]
    for provider in known:
        if found := record.get(provider.slug):
            sources = ", ".join(found["compared_with"]) or "nothing"
            missing = ", ".join(f"`{model_id}`" for model_id in found["not_described"])
            is_all = not found["compared_with"]
            lines.append(f"| {provider.name} | {sources} | {'all models' if is_all else missing} |")
    return f"{PROOF}\n" + "\n".join(lines) + f"\n\n{NOT_DESCRIBED.rstrip()}"


def signs_of_life() -> dict[str, tuple[str, str]]:
    """The day on which each provider's API was last seen, and by whom, by the provider's slug."""
    lines = (line for line in SIGNS_OF_LIFE.read_text().splitlines() if not line.startswith("#"))
    return {slug: (day, witness) for slug, day, witness in (line.split(maxsplit=2) for line in lines)}


def alive(known: Sequence[Provider]) -> str:
    signs = signs_of_life()
    rows = [f"| {provider.name} | {' | '.join(signs[provider.slug])} |" for provider in known if provider.slug in signs]
    return f"{ALIVE}\n| provider | seen | witness |\n| --- | --- | --- |\n" + "\n".join(rows)


def line(provider: Provider) -> str:
    does = dict.fromkeys(mode for model in provider.models for mode in modes(model))
    count = len({model.id for model in provider.models})
    return f"| [{provider.name}](providers/{provider.slug}.md) | {switch(provider)} | {count} | {', '.join(does)} |"


def switch(provider: Provider) -> str:
    named = [name for name in (provider.base_url_env, provider.key_env) if name]
    return " and ".join(f"`{name}`" for name in named) or "always on"


def provider_page(note: str, provider: Provider) -> str:
    """The page of one provider: its models, their prices, and what happens to each field."""
    docs = f" [Its own documentation]({provider.docs})." if provider.docs.startswith("http") else ""
    sources = list(dict.fromkeys(price.source for model in provider.models for price in model.prices if price.source))
    rows = "\n".join(row(model, sources) for model in provider.models)
    table = f"| model | name at the provider | does | price |\n| --- | --- | --- | --- |\n{rows}"
    numbered = [f"{mark(source, sources)}{source_text(source)}" for source in sources]
    legend = f"\n\nPrices: {'; '.join(numbered)}." if sources else ""
    parts = [
        f"# {provider.name}",
        note,
        f"`{provider.slug}`, {how(provider)}.{docs} {READING}",
        table + legend,
        *operations(provider),
    ]
    return "\n\n".join(parts) + "\n"


def how(provider: Provider) -> str:
    return f"switched on by {switch(provider)}" if provider.key_env or provider.base_url_env else "always on"


def mark(source: Source, sources: Sequence[Source]) -> str:
    """The number of a price's source, if the provider's prices have several sources."""
    return f"[{sources.index(source) + 1}] " if len(sources) > 1 else ""


def source_text(source: Source) -> str:
    parts = [source.name, *([source.as_of] if source.as_of else [])]
    return ", ".join(parts) + (" (second-hand)" if source.is_second_hand else "")


def row(model: Model, sources: Sequence[Source]) -> str:
    upstream = "any model" if model.upstream == ANY else f"`{model.upstream}`"
    marks = "".join(dict.fromkeys(mark(price.source, sources) for price in model.prices if price.source))
    end = f" until {model.shutdown_date}" if model.shutdown_date else ""
    return f"| `{model.id}` | {upstream} | {', '.join(modes(model))}{end} | {prices(model)} {marks}".rstrip() + " |"


# -------------------------------------------------------------------------------------------------------------- prices


def prices(model: Model) -> str:
    return "; ".join(dict.fromkeys(money(price) for price in shown_prices(model.prices))) or "unknown"


def money(price: Price) -> str:
    units = MILLION if price.unit in ("token", "character", "byte") else Decimal(1)
    unit = UNITS[price.unit]
    if price.unit == "megapixel" and len(price.usd) > LONGEST_AMOUNT:  # of the provider's larger megapixel
        units, unit = PIXELS_OF_1024, "for 1024x1024 pixels"
    if price.unit == "second" and Decimal(price.usd) < SMALLEST_A_SECOND:  # of sounds that are listened to
        units, unit = Decimal(3600), "an hour"
    words = f"{amount(price.usd, units)} {unit}"
    if price.input_usd != "0":
        words += f", {amount(price.input_usd, units)} input"
    words += "".join(f", {amount(usd, units)} {name}" for name, usd in price.other_usd.items() if usd != "0")
    if price.each_usd != "0":
        words += f", {price.each_usd} for each output"
    conditions = [CONDITIONS.get(name, f"{name.removeprefix(SENT)} {value}") for name, value in price.when.items()]
    if price.above:
        conditions.append(f"more than {price.above} {'input tokens' if price.unit == 'token' else 'pixels'}")
    if price.from_date:
        conditions.append(f"from {price.from_date}")
    return f"{words} ({', '.join(conditions)})" if conditions else words


def amount(usd: str, units: Decimal) -> str:
    text = f"{round(Decimal(usd) * units, LONGEST_AMOUNT):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---------------------------------------------------------------------------------------------------------- parameters


def operations(provider: Provider) -> Iterator[str]:
    """One table for all models with the same parameters."""
    shared: dict[int, tuple[Operation, list[str]]] = {}
    for model in provider.models:
        op, ids = shared.setdefault(id(model.op), (model.op, []))
        if model.id not in ids:
            ids.append(model.id)
    tables: dict[tuple[str, str], list[str]] = {}
    for op, ids in shared.values():
        tables.setdefault((op.task, parameters(op)), []).extend(f"`{model_id}`" for model_id in ids)
    for (task, table), models in tables.items():
        yield f"## {task.capitalize()}: {brief(models)}\n\n{table}"


def brief(models: list[str]) -> str:
    shown = list(dict.fromkeys(models))
    return ", ".join(shown) if len(shown) <= 4 else f"{', '.join(shown[:3])} and {len(shown) - 3} more"


def parameters(op: Operation) -> str:
    dropped = [row_words(row.name) for row in op.params if row.handling == "ignored"]
    has_video = any(row.name in INPUT_VIDEOS for row in op.params)
    refused = [
        f"{row_words(row.name)} with images" if row.name == "input_reference" and has_video else row_words(row.name)
        for row in op.params
        if row.handling == "refused"
    ]
    fixed = [f"`{row.to[0]}` as `{row.value}`" for row in op.params if row.handling == "fixed"]
    made = [
        f"{target(row)}{' if no `seed` is given' if row.name == 'random_seed' else ''}"
        for row in op.params
        if row.name in MADE_BY_GATEWAY
    ]
    ours = [row_words(row.name) for row in op.params if row.handling == "emulated" and not row.to]
    rows = [row for row in op.params if row.to and row.handling != "fixed" and row.name not in MADE_BY_GATEWAY]
    said = [f"| {row_words(row.name)} | {row.handling} | {target(row)} | {limits(row)} |" for row in rows]
    parts = (
        ["| field | handling | provider's field | limits |\n| --- | --- | --- | --- |\n" + "\n".join(said)]
        if said
        else []
    )
    parts += [f"Emulated: {', '.join(ours)}."] if ours else []
    parts += [f"Ignored: {', '.join(dropped)}."] if dropped else []
    parts += [f"Refused: {', '.join(refused)}."] if refused else []
    parts += [f"Always sent: {', '.join(fixed)}."] if fixed else []
    parts += [f"Filled in by the gateway: {', '.join(made)}."] if made else []
    if op.speech:
        parts += spoken(op.speech)
    if op.transcription:
        parts.append(heard(op.transcription))
    if op.task == "chat":
        parts.append("All other fields as in OpenAI's API.")
    return "\n\n".join(parts)


def heard(transcription: Transcription) -> str:
    """What a model tells of a sound beside its text."""
    has = [f"times of {detail}s" for detail in DETAILS[1:] if transcription.asked(detail)]
    has += ["speakers"] if transcription.speakers else []
    has += ["probabilities"] if transcription.logprobs else []
    least = transcription.least_seconds
    billed = f" A sound that is shorter counts as {least:g} seconds." if least else ""
    return f"Its transcripts have {', '.join(has) if has else 'no times'}.{billed}"


def spoken(speech: Speech) -> list[str]:
    """The formats and the voices of speech; the gateway makes the other formats and the rest of the speeds."""
    formats = ", ".join(f"`{name}`" for name in speech.formats)
    speeds = f" Its own speeds: {speech.speeds[0]:g} to {speech.speeds[1]:g}." if speech.speeds else ""
    said = [f"Its own formats: {formats}.{speeds} At most {speech.max_characters} characters in one call."]
    if speech.voices:
        said.append("Voices: " + ", ".join(f"`{name}`" for name in speech.voices) + ".")
    names = [f"`{name}` is `{voice}`" for name, voice in speech.openai_voices.items() if name != voice]
    return [*said, f"OpenAI's voices: {', '.join(names)}."] if names else said


def target(row: Param) -> str:
    return ", ".join(f"`{to}`" for to in row.to) or "not sent"


def limits(row: Param) -> str:
    said = ["required"] if row.required else []
    if row.one_of:
        said.append("one of " + ", ".join(f"`{value}`" for value in row.one_of))
    said += bounds(row)
    if row.max_length is not None:
        said.append(f"{row.max_length} characters at most")
    if row.max_items is not None:
        said.append(f"{row.max_items} at most")
    if row.max_seconds is not None:
        seconds = f"{row.max_seconds:g} seconds"
        said.append(f"{row.min_seconds:g} to {seconds}" if row.min_seconds else f"{seconds} at most")
    if row.max_bytes is not None:
        size = f"{row.max_bytes / 1_000_000:g} MB"
        said.append(f"{size} at most" if row.name in INPUT_VIDEOS else f"made smaller above {size}")
    if row.by_url:
        said.append("fetched by the provider")
    if row.default is not None:
        said.append(f"default `{row.default}`")
    return ", ".join(said)


def bounds(row: Param) -> list[str]:
    if row.name == "n":
        return [f"{row.high:g} in one call"] if row.high else []
    found: Mapping[str, Any] = {"from": row.low, "to": row.high}
    words = " ".join(f"{word} {number_text(value)}" for word, value in found.items() if value is not None)
    return [words] if words else []
