"""Named places where a test may kill, stop or break the process; inert unless the environment names one."""

import os
import signal
import time

# PENSTOCK_FAILPOINTS="submit.response_read=kill:3,settle.in_tx=raise" acts at the third passage of the first place and
# at every passage of the second. Nothing is read after start, so a running gateway cannot be told to fail.
NAMES = frozenset(
    """accept.before_tx accept.in_tx accept.after_commit submit.intent_committed submit.response_read
    submit.id_committed poll.mid fetch.start fetch.mid media.after_fsync settle.in_tx
    settle.after_commit hook.sent hook.after_2xx hook.between purge.files_gone migrate.mid""".split()
)


class Tripped(Exception):
    """Raised by a place that was told to raise."""


def _parsed(text: str) -> dict[str, tuple[str, int]]:
    places: dict[str, tuple[str, int]] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, action = item.partition("=")
        verb, _, count = action.partition(":")
        if name not in NAMES or verb not in ("kill", "raise", "stop", "sleep") or not (count or "0").isdecimal():
            raise ValueError(f"no such failpoint: {item}")
        places[name] = (verb, int(count or 0))
    return places


_places = _parsed(os.environ.get("PENSTOCK_FAILPOINTS", ""))
_passed: dict[str, int] = {}


def failpoint(name: str) -> None:
    """One passage of a named place."""
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
        raise Tripped(name)
