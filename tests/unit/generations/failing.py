"""Images that fail, and the money of the organization when nothing is charged."""

from typing import Any

import pytest

from penstock.errors import Problem
from penstock.values import nanos
from tests.fake_providers.server import Act
from tests.gateway import RunningGateway

UNTOUCHED = (nanos("10"), 0)


async def failure(running: RunningGateway, **body: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await running.image(**body)
    return caught.value


def named(table: dict[str, Act]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("act", table.values(), ids=table.keys())
