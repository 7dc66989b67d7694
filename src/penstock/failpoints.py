"""Named places where a test may kill, stop or delay the process, or raise an exception.

They do nothing unless the environment variable PENSTOCK_FAILPOINTS names them. It is read once, at the start, so a
running gateway cannot be made to fail. `submit.response_read=kill:3,settle.in_tx=raise` kills the process when it
passes the first place for the third time, and raises an exception whenever it passes the second.
"""

import os
import signal
import time

NAMES = frozenset(
    """accept.before_tx accept.in_tx accept.after_commit submit.intent_committed submit.response_read
    submit.id_committed poll.mid fetch.start fetch.mid seal.before_sign seal.after_sign
    media.after_fsync deliver.after_made deliver.after_copy settle.in_tx
    settle.after_commit hook.sent hook.after_2xx hook.between purge.files_gone migrate.mid""".split()
)


class FailpointRaised(Exception):
    """Raised by a failpoint with the action `raise`."""


def _parse(text: str) -> dict[str, tuple[str, int]]:
    places: dict[str, tuple[str, int]] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, action = item.partition("=")
        verb, _, count = action.partition(":")
        if name not in NAMES or verb not in ("kill", "raise", "stop", "sleep") or not (count or "0").isdecimal():
            raise ValueError(
                f"PENSTOCK_FAILPOINTS: not a failpoint: {item}; the form is NAME=kill|raise|stop|sleep[:COUNT]"
            )
        places[name] = (verb, int(count or 0))
    return places


_places = _parse(os.environ.get("PENSTOCK_FAILPOINTS", ""))
_passed: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Mark a place in the code, and do what the environment says about it."""
    if not _places or name not in _places:
        return
    verb, count = _places[name]
    _passed[name] = _passed.get(name, 0) + 1
    if count and _passed[name] != count:
        return
    if verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif verb == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif verb == "sleep":
        time.sleep(0.2)
    else:
        raise FailpointRaised(name)
