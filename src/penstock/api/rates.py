"""Count calls, refusals, bad keys, votes and files to verify, by key or by address, in this process and minute."""

from penstock.accounts.limits import rate_headers, too_many_requests
from penstock.clock import Clock
from penstock.errors import RateLimited
from penstock.schema import Caller
from penstock.window_counts import WindowCounts

BAD_KEYS_PER_MINUTE = 60
PUBLIC_FILES_PER_MINUTE = 10
VOTE_CALLS_PER_MINUTE = 600  # a vote takes four: the pair, its two files, and the vote
RECORDED_REFUSALS_PER_MINUTE = 1000
_MINUTE = 60.0


class CallRates:
    """Limits for calls, also for those that the store does not count: refused ones, dry runs, imports, bad keys."""

    def __init__(self, clock: Clock, processes: int = 1) -> None:
        self._bad_keys_per_minute = -(-BAD_KEYS_PER_MINUTE // processes)  # each process counts for itself
        self._public_files_per_minute = -(-PUBLIC_FILES_PER_MINUTE // processes)
        self._vote_calls_per_minute = -(-VOTE_CALLS_PER_MINUTE // processes)
        self._public_files = WindowCounts(clock, _MINUTE)
        self._vote_calls = WindowCounts(clock, _MINUTE)
        self._calls = WindowCounts(clock, _MINUTE)
        self._bad_keys = WindowCounts(clock, _MINUTE)
        self._refusals = WindowCounts(clock, _MINUTE)

    def count_call(self, caller: Caller, limit: int) -> dict[str, str]:
        """Count a call of a key with a limit, whatever becomes of it; return the headers that say what is left.

        Raises RateLimited if it is one too many. The store counts accepted requests as well, because other processes
        share the limit.
        """
        count = self._calls.add(caller.key_id)
        seconds = self._calls.seconds_left
        if count > limit:
            raise too_many_requests(limit, seconds)
        return rate_headers(limit, limit - count, seconds)

    def count_bad_key(self, address: str) -> None:
        """Count a call that was not authenticated; raise RateLimited after too many from one address."""
        if self._bad_keys.add(address) > self._bad_keys_per_minute:
            headers = {"retry-after": str(self._bad_keys.seconds_left)}
            raise RateLimited("Too many calls without a valid API key from this address.", headers=headers)

    def count_public_file(self, address: str) -> None:
        """Count a file that is to be verified without a key; raise RateLimited after too many from one address."""
        if self._public_files.add(address) > self._public_files_per_minute:
            headers = {"retry-after": str(self._public_files.seconds_left)}
            raise RateLimited("Too many files from this address; wait a minute.", headers=headers)

    def count_vote(self, address: str) -> None:
        """Count a call of somebody who votes by a link; raise RateLimited after too many from one address."""
        if self._vote_calls.add(address) > self._vote_calls_per_minute:
            headers = {"retry-after": str(self._vote_calls.seconds_left)}
            raise RateLimited("Too many votes from this address; wait a minute.", headers=headers, should_retry=True)

    def count_refusal(self, key_id: str) -> int:
        """Count a refused call; return how many of this key there were in this minute."""
        return self._refusals.add(key_id)
