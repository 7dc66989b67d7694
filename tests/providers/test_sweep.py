"""Every request that our tables can send, against what providers and others publish about the same endpoints."""

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from penstock.providers import discover
from penstock.providers.spec import Model, Provider
from tests.providers import descriptions, sweep
from tests.providers.recordings import known_providers

pytestmark = pytest.mark.skipif(not descriptions.INSTALLED, reason="the descriptions are missing: run `make setup`")


def test_requests_fit_the_descriptions(record_property: Callable[[str, object], None]) -> None:
    """One test, because reading the descriptions takes longer than the comparison."""
    checked, found, unused = Counter[str](), Counter[str](), {*_narrower()}
    for slug in descriptions.descriptions():
        provider = known_providers()[slug]
        for model in (model for model in provider.models if model.op.task != "chat"):
            _check_model(provider, model, checked, found, unused)
    record_property("compared", dict(checked))
    assert not found, "\n" + "\n".join(f"{breach} ({count} times)" for breach, count in found.items())
    assert not unused, f"no longer needed in descriptions.NARROWER: {sorted(unused)}"
    assert sum(checked.values()) > 5000, checked


def test_the_page_about_providers_says_what_is_compared() -> None:
    assert json.loads(descriptions.RECORD.read_text()) == descriptions.compared(discover()), "run `make docs`"


def _check_model(
    provider: Provider, model: Model, checked: Counter[str], found: Counter[str], unused: set[tuple[str, str]]
) -> None:
    described = None
    for sent in sweep.requests(provider, model):
        described = descriptions.find_validators(sent) if described is None else described
        for description, validator in described:
            checked[f"{provider.slug}: {description.source}"] += 1
            for breach in descriptions.breaches(validator, sent.body):
                known = [row for row in _narrower() if row[0] == provider.slug and re.search(row[1], breach)]
                unused.difference_update(known)
                if not known:
                    found[f"{provider.slug} {model.id} {model.op.task}, {description.source}: {breach}"] += 1


def _narrower() -> list[tuple[str, str]]:
    return [(slug, pattern) for slug, rows in descriptions.NARROWER.items() for pattern, _ in rows]
