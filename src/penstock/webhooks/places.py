"""Places for deliveries at the same time, of which each host and each organization may occupy only some."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from penstock.webhooks.delivery import LeasedMessage

# A receiver that hangs occupies a place until the delivery times out. So there are many places, and one host may occupy
# only some of them: it does not delay deliveries to other hosts. One organization with many hanging hosts may occupy as
# many places as are free then: half of them, a third if two organizations do so, and so on. Some are always free.
_MOST = 2400
_PER_HOST = 128
_FEWEST = 8  # when this machine runs out of sockets or file descriptors


class Place:
    """The place of one delivery."""

    __slots__ = ("_end", "_end_sending", "is_sending")

    def __init__(self, end_sending: Callable[[], None], end: Callable[[], None]) -> None:
        """Each of the two functions is called once."""
        self._end_sending = end_sending
        self._end = end
        self.is_sending = True  # until `end_sending`

    def end_sending(self) -> None:
        """Stop counting it for its host and its organization: the message was sent, or will not be."""
        if self.is_sending:
            self.is_sending = False
            self._end_sending()

    def give_back(self) -> None:
        """Stop counting it at all: the result is recorded."""
        self.end_sending()
        self._end()


class DeliveryPlaces:
    """Counts messages that this process has leased: in all until their result is recorded, of a host and of an
    organization only until they were sent.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        """`on_room` is called when a message that has waited for a place may have room."""
        self._on_room = on_room
        self._limit = _MOST
        self._taken = 0
        self._per_host: Counter[str] = Counter()
        self._per_org: Counter[str] = Counter()

    @property
    def free(self) -> int:
        return self._limit - self._taken

    @property
    def busy_hosts(self) -> list[str]:
        return [host for host, count in self._per_host.items() if count >= _PER_HOST]

    @property
    def busy_orgs(self) -> list[str]:
        return [org_id for org_id, count in self._per_org.items() if count >= self.free]

    @property
    def are_crowded(self) -> bool:
        """Whether messages of a host or of an organization wait although others may be sent."""
        return bool(self.busy_hosts or self.busy_orgs)

    def has_room(self, message: LeasedMessage) -> bool:
        """Whether this message may be sent now."""
        return self._per_host[message.host] < _PER_HOST and self._per_org[message.org_id] < self.free

    def take(self, message: LeasedMessage) -> Place:
        """Take a place for a message; the caller gives it back."""
        self._taken += 1
        self._per_host[message.host] += 1
        self._per_org[message.org_id] += 1
        return Place(partial(self._end_sending, message), self._end)

    def _end_sending(self, message: LeasedMessage) -> None:
        if self._per_host[message.host] >= _PER_HOST or self.busy_orgs:
            self._on_room()
        _subtract_one(self._per_host, message.host)
        _subtract_one(self._per_org, message.org_id)

    def _end(self) -> None:
        if self.free <= 0:
            self._on_room()
        self._taken -= 1

    def add_one(self) -> None:
        """Allow one more, after a delivery for which this machine had what it takes."""
        self._limit = min(_MOST, self._limit + 1)

    def halve(self) -> None:
        """Allow fewer, after this machine ran out of sockets or file descriptors."""
        self._limit = max(_FEWEST, self._limit // 2)


def _subtract_one(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
