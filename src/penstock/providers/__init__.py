"""Every provider the gateway knows; a file in this folder, or an installed package, is enough to add one."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from penstock.providers.spec import Provider

GROUP = "penstock.providers"


@cache  # what is installed stays the same while a program runs
def discover() -> tuple[Provider, ...]:
    """Files of this folder that define PROVIDER, then entry points of installed packages."""
    return *_beside(), *_installed()


def _beside() -> Iterator[Provider]:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        found = getattr(importlib.import_module(f"{__name__}.{module.name}"), "PROVIDER", None)
        if isinstance(found, Provider):
            yield found


def _installed() -> Iterator[Provider]:
    for point in entry_points(group=GROUP):
        provider = point.load()
        if not isinstance(provider, Provider):
            raise TypeError(f"{point.value} is not a Provider")
        yield provider
