"""All providers that the gateway knows, one file or folder each; installed packages can add others."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from penstock.providers.spec import Provider

ENTRY_POINT_GROUP = "penstock.providers"


@cache  # packages are not installed while the gateway runs
def discover() -> tuple[Provider, ...]:
    """Find the modules of this package that define PROVIDER, then the entry points of installed packages.

    Raises TypeError if an entry point is not a Provider.
    """
    return *_built_in_providers(), *_installed_providers()


def _built_in_providers() -> Iterator[Provider]:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        provider = getattr(importlib.import_module(f"{__name__}.{module.name}"), "PROVIDER", None)
        if isinstance(provider, Provider):
            yield provider


def _installed_providers() -> Iterator[Provider]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        provider = point.load()
        if not isinstance(provider, Provider):
            raise TypeError(f"{point.value} is not a Provider")
        yield provider
