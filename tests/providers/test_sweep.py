"""Every request that our tables can send, against what providers and others publish about the same endpoints."""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from penstock.providers import discover
from penstock.providers.spec import Model, Provider
from tests.providers import descriptions, sweep
from tests.providers.recordings import known_providers


def test_requests_fit_the_descriptions(record_property: Callable[[str, object], None]) -> None:
    """One test, because reading the descriptions takes longer than the comparison."""
    compared, found = Counter[str](), Counter[str]()
    unused = {(slug, pattern) for slug, rows in descriptions.NARROWER.items() for pattern, _ in rows}
    for slug in descriptions.descriptions():
        provider = known_providers()[slug]
        for model in (model for model in provider.models if model.op.task != "chat"):
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


def test_the_page_about_providers_says_what_is_compared() -> None:
    assert json.loads(descriptions.RECORD.read_text()) == descriptions.compared(discover()), "run `make docs`"
