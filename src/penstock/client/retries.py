"""Which calls are repeated, and after which pause."""

from random import random

from penstock.client.calls import Call
from penstock.client.failures import CallFailed, NotConnected, Refused

RETRIES = 5  # 0.5, 1, 2, 4 and 8 seconds: a gateway that restarts is back by then
POLL_RETRIES = 20  # what is waited for goes on without us: some nine minutes
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)


def retry_pause(call: Call, failure: CallFailed, tries: int, retries: int) -> float | None:
    """How many seconds to wait before a call is sent again that failed so; None if it must not be.

    A paid call has an idempotency key, with which the gateway makes and charges it once, however often it comes.
    """
    if tries > retries or not call.may_be_repeated:
        return None
    pause = min(_FIRST_PAUSE_SECONDS * float(2 ** (tries - 1)), _LONGEST_PAUSE_SECONDS)
    if isinstance(failure, NotConnected):
        return pause * (0.75 + random() / 2)  # noqa: S311 - so that many clients do not return at the same moment
    if not isinstance(failure, Refused) or not _is_temporary(failure):
        return None
    return max(pause, _asked_for(failure))


def _is_temporary(refused: Refused) -> bool:
    if refused.code == "UPSTREAM_TIMEOUT":
        return True  # what a paid call began goes on, and its key finds it
    if said := refused.headers.get("x-should-retry"):
        return said == "true"
    return refused.status in _TEMPORARY


def _asked_for(refused: Refused) -> float:
    """The seconds in `retry-after`, as far as somebody would wait for them."""
    text = refused.headers.get("retry-after", "")
    return min(float(text), 2 * _LONGEST_PAUSE_SECONDS) if text.isdecimal() else 0.0
