"""Fields of providers that our tables do not name are passed on. Each was looked at, and is in extra_fields.txt.

A field that is billed, or that sends the result elsewhere, is refused by a row or by `priced_extras` of the provider's
table, or by upstream/field_guesses.py. `python -m tests.providers.test_extra_fields` prints those that are passed on.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import InvalidRequest
from penstock.fields import TABLES
from penstock.providers.spec import Model, Provider
from penstock.upstream.extra_fields import check_extras
from tests.providers import descriptions, json_schemas, sweep
from tests.providers.recordings import UNLIKE_IMAGES, known_providers

WRITTEN = Path(__file__).with_name("extra_fields.txt")


def passed_on() -> list[str]:
    """For each provider and task, the described fields that callers may send although no row is for them."""
    lines = []
    for slug in sorted(descriptions.descriptions()):
        found: dict[str, set[str]] = {}
        provider = known_providers()[slug]
        for model in (
            model for model in provider.models if model.op.task not in UNLIKE_IMAGES and model.op.takes_extras
        ):
            found.setdefault(model.op.task, set()).update(_extras(provider, model))
        lines += [f"{slug} {task}: {' '.join(sorted(names))}" for task, names in found.items() if names]
    return lines


def _extras(provider: Provider, model: Model) -> Iterator[str]:
    sent = next(sweep.requests(provider, model))
    for _, validator in descriptions.find_validators(provider.slug, sent.path, sent.body):
        for name in json_schemas.property_names(validator.schema, validator.schema):
            if name not in sent.body and name not in TABLES[model.op.task] and model.op.param(name) is None:
                try:
                    check_extras(model, {name: "x"})
                except InvalidRequest:
                    continue
                yield name


def test_only_fields_that_were_looked_at_are_passed_on() -> None:
    written, found = WRITTEN.read_text().splitlines(), passed_on()
    missing = [f"- {line}" for line in written if line not in found]
    assert [*missing, *(f"+ {line}" for line in found if line not in written)] == []


if __name__ == "__main__":
    sys.stdout.write("\n".join(passed_on()) + "\n")
