"""What is stored of destinations: keys that only the master secret opens, and changes that other processes notice."""

from unittest.mock import patch

import pytest

from penstock.clock import Clock
from penstock.commands.secret import reseal_rows
from penstock.destinations.bucket import BucketClient, Probe
from penstock.destinations.destinations import Destinations
from penstock.errors import NotFound
from penstock.net.checked_urls import NO_EXCEPTIONS
from penstock.store.base import Store
from penstock.values import OrgId
from penstock.vault import Vault
from tests.databases import Database
from tests.http_client import open_client

ORG, OTHER = OrgId("org_1"), OrgId("org_2")
FIRST, SECOND = "a" * 43, "b" * 43
BUCKET = {"url": "s3://media/x", "access_key_id": "AKIACANARYCANARY0000", "secret_access_key": "canary-of-the-secret"}


async def works(*_: object) -> Probe:
    return Probe(can_read=True, can_delete=False)


async def test_keys_are_sealed_and_other_processes_notice_changes(database: Database) -> None:
    async with database.open() as store, open_client() as client:

        def of_process(*secrets: str) -> Destinations:
            return Destinations(store, Vault(*secrets), Clock(), client, NO_EXCEPTIONS)

        mine, another = of_process(FIRST), of_process(FIRST)
        with patch.object(BucketClient, "probe", works):
            added = await mine.add(ORG, BUCKET)
        assert not added["check"]["can_delete"]
        assert added["check"]["message"]
        assert "canary" not in repr(await store.slow("list_destinations"))
        await another.refresh()
        found = another.get(ORG, added["id"])
        assert (found.keys.secret_access_key, found.url) == ("canary-of-the-secret", "s3://media/x")
        assert "canary" not in repr(found)
        with pytest.raises(NotFound):
            another.get(OTHER, added["id"])
        await _reseal(store)
        later = of_process(SECOND)
        await later.refresh()
        assert later.get(ORG, added["id"]).keys == found.keys
        await later.delete(ORG, added["id"])
        await another.refresh()
        with pytest.raises(NotFound):
            another.get(ORG, added["id"])


async def _reseal(store: Store) -> None:
    both = Vault(SECOND, FIRST)
    queries = ("list_destinations", "reseal_destination")
    assert [await reseal_rows(store, both, *queries), await reseal_rows(store, both, *queries)] == [1, 0]
