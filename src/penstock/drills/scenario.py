"""Which providers are down, slow or dearer in a drill."""

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

import msgspec

from penstock.errors import InvalidRequest

_TIMES = re.compile(r"([\w.-]+) ?= ?([0-9]{1,4}(?:\.[0-9]{1,2})?)x")
_MOST_TIMES = 1000
_MOST_PROVIDERS = 20


class Scenario(msgspec.Struct, frozen=True):
    """What is different in a drill; providers by their slugs."""

    down: frozenset[str] = frozenset()
    slow: Mapping[str, Decimal] = {}  # how many times as long they take
    dearer: Mapping[str, Decimal] = {}  # how many times as much they cost

    def changes(self, provider: str) -> bool:
        """Whether anything is different about a provider."""
        return provider in self.down or provider in self.slow or provider in self.dearer


def read_scenario(
    down: Sequence[str], slow: Sequence[str], dearer: Sequence[str], providers: Collection[str]
) -> Scenario:
    """The scenario that names of providers, and items such as `fal=4x`, describe. `providers` are the names of all.

    Raises InvalidRequest, which names the parameter.
    """
    for name in down:
        _check(name, "down", providers)
    if len(down) + len(slow) + len(dearer) > _MOST_PROVIDERS:
        raise InvalidRequest(f"A drill may change {_MOST_PROVIDERS} providers at most.")
    return Scenario(frozenset(down), _by_provider(slow, "slow", providers), _by_provider(dearer, "dearer", providers))


def _by_provider(items: Sequence[str], param: str, providers: Collection[str]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for item in items:
        match = _TIMES.fullmatch(item)
        if match is None or not 0 < Decimal(match[2]) <= _MOST_TIMES:
            message = f"`{param}` has `{item[:64]}`; write a provider and how many times, such as `fal=4x`"
            raise InvalidRequest(f"{message}, above 0 and at most {_MOST_TIMES}.", param=param)
        _check(match[1], param, providers)
        found[match[1]] = Decimal(match[2])
    return found


def _check(name: str, param: str, providers: Collection[str]) -> None:
    if name not in providers:
        raise InvalidRequest(f"`{param}` names `{name[:64]}`, which is no provider of this gateway.", param=param)
