"""Every request that our tables can send, against what providers and others publish about the same endpoints."""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from penstock.errors import InvalidRequest
from penstock.providers import discover
from penstock.providers.spec import Model, Provider
from tests.providers import descriptions, sweep
from tests.providers.recordings import UNLIKE_IMAGES, known_providers


def test_requests_fit_the_descriptions(record_property: Callable[[str, object], None]) -> None:
    """One test, because reading the descriptions takes longer than the comparison."""
    compared, found = Counter[str](), Counter[str]()
    unused = {(slug, pattern) for slug, rows in descriptions.NARROWER.items() for pattern, _ in rows}
    for slug in descriptions.descriptions():
        provider = known_providers()[slug]
        for model in (model for model in provider.models if model.op.task not in UNLIKE_IMAGES):
            for source, breach, allowed_by in _compare(provider, model):
                compared[f"{slug}: {source}"] += breach is None
                unused.discard((slug, allowed_by or ""))
                if breach and not allowed_by:
                    found[f"{slug} {model.id} {model.op.task}, {source}: {breach}"] += 1
    record_property("compared", dict(compared))
    assert not found, "\n" + "\n".join(f"{breach} ({count} times)" for breach, count in found.items())
    assert not unused, f"no longer needed in descriptions.NARROWER: {sorted(unused)}"
    assert sum(compared.values()) > 5000, compared


def _compare(provider: Provider, model: Model) -> Iterator[tuple[str, str | None, str | None]]:
    """For each request and description: its source without a breach, and then once with each breach."""
    for sent in sweep.requests(provider, model):
        for description, validator in descriptions.find_validators(provider.slug, sent.path, sent.body):
            yield description.source, None, None
            for breach, allowed_by in descriptions.breaches(provider.slug, validator, sent.body):
                yield description.source, breach, allowed_by


# Fields that a description has for all models of an endpoint, although some of its models do not take them.
NOT_TAKEN = {
    ("bytedance", "seed"): "no source says that Seedream 4 or later takes it",
    ("cloudflare", "negative_prompt"): "FLUX has none",
    ("together", "seed"): "no source says that Seedance takes it there",
    ("topaz", "seed"): "Wonder has none",
}


def test_seed_and_negative_prompt_are_in_the_tables_of_models_that_take_them() -> None:
    """A field without a row is sent unchanged, but no schema and no page says that the model takes it."""
    undeclared = {
        (slug, name, model.id)
        for slug in descriptions.descriptions()
        for model in known_providers()[slug].models
        for name, value in (("seed", 7), ("negative_prompt", "fog"))
        if model.op.task not in UNLIKE_IMAGES and model.op.param(name) is None and (slug, name) not in NOT_TAKEN
        if _knows(known_providers()[slug], model, name, value) and not _knows(known_providers()[slug], model, "odd", 7)
    }
    assert sorted(undeclared) == []


def _knows(provider: Provider, model: Model, name: str, value: object) -> bool:
    """Whether a description allows a field that has no row, beside those of the model's first request."""
    sent = next(sweep.requests(provider, model))
    try:
        body = sweep.body(model, {**sent.values, name: value}, sent.images)
    except InvalidRequest:
        return False
    found = descriptions.find_validators(provider.slug, sent.path, body)
    return any(
        not any(f"'{name}'" in breach for breach, _ in descriptions.breaches(provider.slug, validator, body))
        for _, validator in found
    )


def test_the_page_about_providers_says_what_is_compared() -> None:
    assert json.loads(descriptions.RECORD.read_text()) == descriptions.compared(discover()), "run `make docs`"
