"""Read the rows that belong to a page of others, by their ids."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.store.base import Row, Store


async def read_related(store: Store, query: str, ids: Sequence[str], /, **values: Any) -> list[Row]:
    """Run a query with a parameter `ids`; without ids there is nothing to read."""
    return await store.all(query, ids=msgspec.json.encode(ids).decode(), **values) if ids else []
