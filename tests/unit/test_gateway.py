"""The parts of a gateway, and whether it is ready."""

from dataclasses import fields

from penstock.app.build import build_gateway
from penstock.app.first_start import ensure_first_key
from penstock.gateway import Gateway
from penstock.settings import Settings
from tests.gateway import MASTER, Installation, OpenGateway


async def test_ready_after_the_first_start(installation: Installation) -> None:
    settings = Settings(data=installation.data, database=installation.database, secret=MASTER)
    async with build_gateway(settings, installation.clock, {}) as gateway:
        assert await gateway.ready() is False
        await ensure_first_key(gateway)
        assert await gateway.ready() is True


async def test_not_ready_while_draining(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        running.gateway.draining = True
        assert await running.gateway.ready() is False


async def test_every_part_is_set(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        missing = [field.name for field in fields(Gateway) if getattr(running.gateway, field.name) is None]
        assert missing == ["sign_in", "tracing"]  # set only with an issuer, and where traces are exported
