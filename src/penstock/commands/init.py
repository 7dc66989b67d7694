"""Prepare a data folder or a database without starting a gateway."""

import asyncio

from penstock.app.first_start import ensure_first_org
from penstock.app.opening import open_store_and_vault
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.output import Json, report


def init(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Create the database, the master secret and the first organization, so that keys can be created before the first
    start.
    """
    settings = load_settings(data=data, config=config)

    async def work() -> str:
        async with open_store_and_vault(settings) as (store, _):
            return await ensure_first_org(store, settings, Clock())

    org_id = asyncio.run(work())
    report(org_id, as_json, org_id=org_id)
