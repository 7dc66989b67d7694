"""Sort the changes of a transaction so that it locks rows in the order in which others do."""

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.store.base import Change


def in_lock_order(changes: Iterable[Change], queries: Sequence[str | tuple[str, ...]]) -> list[Change]:
    """Sort changes by the places of their queries in `queries`, and those of one place by the ids of the rows: so
    transactions that change the same rows do not wait for each other in a circle. Queries of one table share a place.
    """
    by_place: list[list[Change]] = [[] for _ in queries]
    by_query: dict[str, list[Change]] = {}
    for names, same in zip(queries, by_place, strict=True):
        by_query.update(dict.fromkeys((names,) if isinstance(names, str) else names, same))
    for change in changes:
        by_query[change[0]].append(change)
    return [change for same in by_place for change in (sorted(same, key=_row_id) if len(same) > 1 else same)]


def _row_id(change: Change) -> Any:
    """The id of the row that a change is about, or of the row that it belongs to."""
    values = change[1]
    return values.get("id") or values.get("request_id") or values["recording_id"]
