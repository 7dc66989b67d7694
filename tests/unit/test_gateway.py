"""The pieces in one place, and whether they take work."""

from dataclasses import fields

from penstock.app import first_start, opened_gateway
from penstock.gateway import Gateway
from penstock.settings import Settings
from tests.house import MASTER, Ground, OpenHouse


async def test_ready_when_there_is_somebody_to_serve(ground: Ground) -> None:
    settings = Settings(data=ground.data, database=ground.database, secret=MASTER)
    async with opened_gateway(settings, ground.clock, {}) as gateway:
        assert await gateway.ready() is False
        await first_start(gateway)
        assert await gateway.ready() is True


async def test_not_ready_while_draining(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        house.gateway.draining = True
        assert await house.gateway.ready() is False


async def test_every_piece_is_there(open_house: OpenHouse) -> None:
    async with open_house(works=False) as house:
        assert all(getattr(house.gateway, field.name) is not None for field in fields(Gateway))
