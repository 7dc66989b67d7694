"""Pages of a list: limits, cursors, both directions, and every row at once."""

import pytest

from penstock.accounts.key_records import KeyRow
from penstock.accounts.keys import Keys
from penstock.accounts.orgs import create_org
from penstock.errors import InvalidRequest, NotFound
from penstock.store.base import Store
from penstock.store.paging import MAX_LIMIT, Page, Pager
from penstock.values import OrgId, new_id
from penstock.vault import Vault
from tests.databases import BOTH, Database, database_for
from tests.manual_clock import ManualClock


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return database_for(request, request.param)


async def make_keys(store: Store, count: int) -> tuple[OrgId, list[str]]:
    """Create an organization with keys; return its id and theirs, newest first."""
    clock = ManualClock()
    keys = Keys(store, Vault("m" * 43), clock)
    org = await create_org(store, clock, "Acme", "prepaid")
    made: list[str] = []
    for _ in range(count):
        clock.advance(1)
        made.insert(0, (await keys.create_key(org.id)).id)
    return org.id, made


def ids(page: Page[KeyRow]) -> list[str]:
    return [row.id for row in page.data]


async def test_pages_follow_each_other_in_both_directions(database: Database) -> None:
    async with database.open() as store:
        org_id, made = await make_keys(store, 5)
        pager = Pager(store, "key", "key", KeyRow)
        first = await pager.page(org_id, 2, status=None)
        assert (ids(first), first.next_cursor, first.previous_cursor) == (made[:2], made[1], None)
        second = await pager.page(org_id, 2, starting_after=first.next_cursor, status=None)
        assert (ids(second), second.next_cursor, second.previous_cursor) == (made[2:4], made[3], made[2])
        last = await pager.page(org_id, 2, starting_after=second.next_cursor, status=None)
        assert (ids(last), last.next_cursor, last.previous_cursor) == (made[4:], None, made[4])
        back = await pager.page(org_id, 2, ending_before=last.previous_cursor, status=None)
        assert (ids(back), back.next_cursor, back.previous_cursor) == (made[2:4], made[3], made[2])
        top = await pager.page(org_id, 2, ending_before=back.previous_cursor, status=None)
        assert (ids(top), top.next_cursor, top.previous_cursor) == (made[:2], made[1], None)


async def test_a_page_past_the_last_row_is_empty_and_leads_nowhere(database: Database) -> None:
    async with database.open() as store:
        org_id, made = await make_keys(store, 1)
        assert await Pager(store, "key", "key", KeyRow).page(org_id, starting_after=made[0], status=None) == Page([])


async def test_rows_are_read_in_either_order_and_between_two_ids(database: Database) -> None:
    async with database.open() as store:
        org_id, made = await make_keys(store, 5)
        pager = Pager(store, "key", "key", KeyRow)
        rows, more = await pager.rows(org_id, 2, ascending=True, status=None)
        assert ([row.id for row in rows], more) == ([made[4], made[3]], True)
        rows, more = await pager.rows(org_id, 3, low=made[4], high=made[0], status=None)
        assert ([row.id for row in rows], more) == (made[1:4], False)


async def test_all_reads_more_rows_than_fit_on_a_page(database: Database) -> None:
    async with database.open() as store:
        org_id, made = await make_keys(store, MAX_LIMIT + 1)
        assert [row.id for row in await Pager(store, "key", "key", KeyRow).all(org_id, status=None)] == made


async def test_a_limit_or_a_pair_of_cursors_that_is_not_allowed_is_refused(database: Database) -> None:
    async with database.open() as store:
        org_id, made = await make_keys(store, 1)
        pager = Pager(store, "key", "key", KeyRow)
        for limit in (0, MAX_LIMIT + 1):
            with pytest.raises(InvalidRequest, match="1 to 100"):
                await pager.page(org_id, limit, status=None)
        with pytest.raises(InvalidRequest, match="cannot be combined"):
            await pager.page(org_id, starting_after=made[0], ending_before=made[0], status=None)


async def test_a_cursor_must_be_the_id_of_a_row_of_the_organization(database: Database) -> None:
    async with database.open() as store:
        org_id, _ = await make_keys(store, 1)
        _, foreign = await make_keys(store, 1)
        for cursor in (foreign[0], new_id("key", 1), "key_x", "req_" + "0" * 32, "x", "é", ""):
            for name in ("starting_after", "ending_before"):
                with pytest.raises(NotFound, match="No such key") as caught:
                    await Pager(store, "key", "key", KeyRow).page(org_id, **{name: cursor}, status=None)  # type: ignore[arg-type]
                assert caught.value.param == name
