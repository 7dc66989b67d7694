"""Log why an attempt failed, with the provider's words but without what they quote of the caller's."""

import re
from collections.abc import Iterator
from typing import Any

import structlog

from penstock.settings import Settings
from penstock.telemetry.logs import redact
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure

log = structlog.get_logger()

_WORDS_CHARS_MAX = 300
_SENT_CHARS_MAX = 64 * 1024  # of what the caller sent, the most that is searched for quotations
_QUOTED_WORDS = 3  # so many words in a row that the caller sent too are taken for a quotation
_LONG_WORD = 12  # and so is one word of this length
_WORD = re.compile(r"\w+")
_HIDDEN = "[…]"


def log_failure(settings: Settings, candidate: Candidate, failure: Failure, request_id: str, sent: Any) -> None:
    """Write the log line of a failed attempt. `sent` is what the caller wrote, as JSON; what the provider quotes of it
    is left out. Where the settings allow nothing to be stored, all of the provider's words are left out.
    """
    write = log.info if failure.kind in ("rejected", "refused") else log.warning
    write(
        "attempt failed",
        request_id=request_id,
        provider=candidate.provider.slug,
        model=candidate.model.upstream,
        kind=failure.kind,
        http_status=failure.status,
        words=without_quotations(failure.words or failure.message, sent) if settings.payloads != "none" else None,
    )


def without_quotations(words: str, sent: Any) -> str | None:
    """The beginning of a provider's message, with `[…]` for what it quotes; None if there is too much to search in."""
    texts = []
    left = _SENT_CHARS_MAX
    for text in _texts(sent):
        left -= len(text) + 1
        if left < 0:
            return None
        texts.append(text)
    words = redact(words)[:_WORDS_CHARS_MAX]
    searched = "\n".join(texts).casefold()
    places = [match.span() for match in _WORD.finditer(words)]
    hidden = [place for place in places if place[1] - place[0] >= _LONG_WORD and _is_in(words, place, searched)]
    for first, last in zip(places, places[_QUOTED_WORDS - 1 :], strict=False):
        run = (first[0], last[1])
        if _is_in(words, run, searched):
            hidden.append(run)
    return _hide(words, hidden)


def _is_in(words: str, place: tuple[int, int], searched: str) -> bool:
    return words[place[0] : place[1]].casefold() in searched


def _hide(words: str, places: list[tuple[int, int]]) -> str:
    """Replace places, which may overlap."""
    shown = ""
    end = 0
    for start, stop in sorted(places):
        if start > end or not shown:
            shown += words[end:start] + _HIDDEN
        end = max(end, stop)
    return shown + words[end:]


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, without the names of fields. Not recursive: each level would slow down each text."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
