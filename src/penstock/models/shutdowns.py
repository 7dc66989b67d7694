"""Find the models that their providers will soon stop serving."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from penstock.providers.spec import Provider

_SOON = timedelta(days=30)


class Shutdown(NamedTuple):
    """The announced end of a model at one provider."""

    day: str
    provider: str
    model: str


def soon(providers: Iterable[Provider], today: date) -> list[Shutdown]:
    """Return the models that end within 30 days or have ended, the first to end first."""
    latest = (today + _SOON).isoformat()
    return sorted({shutdown for shutdown in _announced_shutdowns(providers) if shutdown.day <= latest})


def _announced_shutdowns(providers: Iterable[Provider]) -> Iterator[Shutdown]:
    for provider in providers:
        for model in provider.models:
            if model.shutdown_date and model.enabled:
                yield Shutdown(model.shutdown_date, provider.slug, model.id)
