"""Read a list page by page, in the order of its ids."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from penstock.errors import InvalidRequest, NotFound
from penstock.store.base import Store
from penstock.values import OrgId, is_id

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class RowWithId(Protocol):
    """What the rows of a list have in common."""

    @property
    def id(self) -> str: ...


T = TypeVar("T")
Shown = TypeVar("Shown")
TypedRow = TypeVar("TypedRow", bound=RowWithId)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some entries of a list, newest first, and the cursors of the pages beside it; None where there is none."""

    data: list[T]
    next_cursor: str | None = None
    previous_cursor: str | None = None
    summary: dict[str, Any] | None = None

    def with_data(self, data: list[Shown]) -> "Page[Shown]":
        """The same page of the list, with its entries in another form."""
        return Page(data, self.next_cursor, self.previous_cursor, self.summary)


class Pager(Generic[TypedRow]):
    """Reads one kind of row of an organization, a page at a time.

    For the noun `key` it needs the queries `get_key`, `list_older_keys` and `list_newer_keys`. The lists take `org_id`,
    `low` and `high` (ids between which the rows lie, both excluded), `limit`, and the filters that are passed on.
    """

    def __init__(
        self,
        store: Store,
        noun: str,
        prefix: str,
        row: Callable[..., TypedRow],
        *,
        get: str | None = None,
        plural: str | None = None,
    ) -> None:
        """`row` makes a row of its columns; `get` is the query of one row of an organization, if it is not `get_` and
        the noun; `plural` is that of the noun, if it is not the noun and an s.
        """
        self._store = store
        self._row = row
        self._noun = noun
        self._get = get or f"get_{noun}"
        self._plural = plural or f"{noun}s"
        self._prefix = prefix
        self._lowest = f"{prefix}_"
        self._highest = f"{prefix}_~"  # after every id

    async def page(
        self,
        org_id: OrgId,
        limit: int = DEFAULT_LIMIT,
        starting_after: str | None = None,
        ending_before: str | None = None,
        *,
        low: str | None = None,
        high: str | None = None,
        query_suffix: str = "",
        **filters: Any,
    ) -> Page[TypedRow]:
        """Return the rows that are older than `starting_after`, newer than `ending_before`, or else the newest ones.

        Raises InvalidRequest for a limit that is out of range or for two cursors at once, and NotFound for a cursor
        that is not the id of a row of this organization.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"`limit` must be from 1 to {MAX_LIMIT}.", param="limit")
        if starting_after is not None and ending_before is not None:
            raise InvalidRequest("`starting_after` and `ending_before` cannot be combined.", param="ending_before")
        cursor = ending_before if starting_after is None else starting_after
        if cursor is not None:
            await self._check_cursor(org_id, "ending_before" if starting_after is None else "starting_after", cursor)
        lowest = low or self._lowest
        highest = high or self._highest
        ascending = ending_before is not None
        rows, more = await self.rows(
            org_id,
            limit,
            low=max(lowest, ending_before or ""),
            high=min(highest, starting_after or self._highest),
            ascending=ascending,
            query_suffix=query_suffix,
            **filters,
        )
        if not rows:
            return Page([])
        behind = False
        if cursor is not None:
            # The row of the cursor may not match the filters, so only a query tells whether a row that does lies there.
            low, high = (lowest, rows[0].id) if ascending else (rows[0].id, highest)
            found, _ = await self.rows(
                org_id, 1, low=low, high=high, ascending=not ascending, query_suffix=query_suffix, **filters
            )
            behind = bool(found)
        if ascending:
            rows.reverse()
        older, newer = (behind, more) if ascending else (more, behind)
        return Page(rows, rows[-1].id if older else None, rows[0].id if newer else None)

    async def rows(
        self,
        org_id: OrgId,
        limit: int,
        *,
        low: str | None = None,
        high: str | None = None,
        ascending: bool = False,
        query_suffix: str = "",
        **filters: Any,
    ) -> tuple[list[TypedRow], bool]:
        """Return up to `limit` rows between two ids in the order of the query, and whether there are more of them."""
        direction = "newer" if ascending else "older"
        rows = await self._store.slow(
            f"list_{direction}_{self._plural}{query_suffix}",
            org_id=org_id,
            low=low or self._lowest,
            high=high or self._highest,
            limit=limit + 1,
            **filters,
        )
        return [self._row(**row) for row in rows[:limit]], len(rows) > limit

    async def all(self, org_id: OrgId, **filters: Any) -> list[TypedRow]:
        """Return every row, newest first."""
        found: list[TypedRow] = []
        high: str | None = None
        more = True
        while more:
            rows, more = await self.rows(org_id, MAX_LIMIT, high=high, **filters)
            found += rows
            high = rows[-1].id if rows else None
        return found

    async def _check_cursor(self, org_id: OrgId, param: str, cursor: str) -> None:
        row = None
        if is_id(cursor, self._prefix):
            row = await self._store.one(self._get, id=cursor, org_id=org_id)
        if row is None:
            raise NotFound(f"No such {self._noun}: {cursor[:64]}.", param=param)
