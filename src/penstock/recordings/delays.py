"""Limit how many replays and mocks of one organization wait for the time that their calls asked for."""

from penstock.clock import Clock
from penstock.errors import RateLimited
from penstock.values import OrgId

# Of one organization, in one process:
MOST_DELAYED = 1000
MOST_CONNECTED = 50  # that keep a connection waiting: they are free, and connections are few
_MAX_ORGS = 10_000


class Delays:
    """Counts delayed replays and mocks. They cost nothing, and each keeps some memory until it is due."""

    def __init__(self, clock: Clock, most: int = MOST_DELAYED, most_connected: int = MOST_CONNECTED) -> None:
        self._clock = clock
        self._most = {False: most, True: most_connected}
        self._due_ms: dict[tuple[OrgId, bool], list[int]] = {}  # when those that wait are due

    def add(self, org_id: OrgId, due_ms: int, *, keeps_connection: bool) -> None:
        """Count a replay or a mock that is due then, if that is later than now. Raises RateLimited if it is one too
        many. `keeps_connection` says that its caller waits for it on a connection.
        """
        now_ms = self._clock.steady_ms()
        if due_ms <= now_ms:
            return
        if len(self._due_ms) >= _MAX_ORGS:
            self._due_ms.clear()
        counted = org_id, keeps_connection
        most = self._most[keeps_connection]
        waiting = self._due_ms.setdefault(counted, [])
        if len(waiting) >= most:
            waiting = self._due_ms[counted] = [due for due in waiting if due > now_ms]
        if len(waiting) >= most:
            seconds = max(1, -(-(min(waiting) - now_ms) // 1000))
            message = f"At most {most} delayed replays and mocks of your organization may wait at a time."
            raise RateLimited(message, headers={"retry-after": str(seconds)}, should_retry=True)
        waiting.append(due_ms)
