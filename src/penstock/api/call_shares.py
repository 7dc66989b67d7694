"""Give each organization a share of the calls in progress, so that none can take every connection."""

from penstock.errors import RateLimited
from penstock.values import OrgId


class CallShares:
    """Counts the calls of each organization from when the caller is known until the response was sent.

    While half of the connections' places are taken by calls, an organization may have a quarter of the places. So one
    that is alone may have half of them.
    """

    def __init__(self) -> None:
        self._calls: dict[OrgId, int] = {}
        self._total = 0

    def enter(self, org_id: OrgId, places: int) -> OrgId:
        """Count a call and return its organization; raise RateLimited if it is one too many of these places.

        Calls of no organization are not counted.
        """
        if not org_id:
            return org_id
        calls = self._calls.get(org_id, 0)
        if self._total >= places // 2 and calls >= places // 4:
            raise RateLimited(
                "Too many calls of your organization are in progress.",
                headers={"retry-after": "1"},
                should_retry=True,
            )
        self._calls[org_id] = calls + 1
        self._total += 1
        return org_id

    def leave(self, org_id: OrgId) -> None:
        """Stop counting a call."""
        if not org_id:
            return
        self._total -= 1
        calls = self._calls[org_id] - 1
        if calls:
            self._calls[org_id] = calls
        else:
            del self._calls[org_id]
