"""Check what a provider returned, and find out why it failed."""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import structlog
from msgspec.structs import replace

from penstock.long_bodies.base64_pieces import Base64Text
from penstock.long_bodies.buffers import Buffer
from penstock.providers.spec import FailureKind, File, Provider, Reply, Result
from penstock.upstream.candidate import Candidate

log = structlog.get_logger()

# What the reading functions of a provider file raise when a reply is not as they expect; ArithmeticError is that of a
# cost that is not a number.
MALFORMED = (
    KeyError,
    TypeError,
    IndexError,
    ValueError,
    ArithmeticError,
    AttributeError,
    msgspec.DecodeError,
    RecursionError,
)

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_SECRETS = re.compile(r"\b(?:sk|pk|key|rk|r8|whsec|Bearer)[-_ ][A-Za-z0-9_\-.]{8,}")
_PLAIN_URL = re.compile(r"[!-Z^-~]{1,2000}")  # whatever it is, splitting it does not fail
_MESSAGE_CHARACTERS_MAX = 500
_MESSAGE_CHARACTERS_READ = 10 * _MESSAGE_CHARACTERS_MAX
_LEFT_OUT = "…".encode()
_GAP = "[\\s\u200b-\u200d\u2060\ufeff]*"
_KEY_LENGTH_MAX = 512  # longer ones are documents, of which servers know a part
_TAIL_LENGTH_MIN = 12
_KEY_LENGTH_MIN = 20  # shorter ones, as servers of one's own have, may be words of a text
_RETRY_AFTER_SECONDS_MAX = 120.0
_FILES_MAX = 100  # of one result; a call asks for ten at most
_AMOUNT_MAX = 1_000_000_000  # no correct number of dollars, seconds or tokens is as large


# -------------------------------------------------------------------------------------------------------------- results


def validated(result: Result) -> Result:
    """Check the types in a result, because provider files copy values from a reply without looking at them.

    Raises TypeError if a job goes on and its id cannot be used. Leaves out numbers, messages and files that cannot be
    right, files above the hundredth, and such ids of what has ended.
    """
    changes = _implausible(result)
    if not all(isinstance(value, str) for value in _ids(result)):
        if not result.done:
            raise TypeError("the id of a job is not text")
        ids: Mapping[str, Any] = result.ref
        changes["ref"] = {name: value for name, value in ids.items() if isinstance(value, str)}
        changes["upstream_id"] = result.upstream_id if isinstance(result.upstream_id, str) else None
    files = [_validated_file(file) for file in result.files[:_FILES_MAX] if _is_usable(file)]
    if tuple(files) != result.files:
        changes["files"] = tuple(files)
    if not all(map(_is_amount, result.usage.values())):
        changes["usage"] = {name: count for name, count in result.usage.items() if _is_amount(count)}
    return replace(result, **changes) if changes else result


def with_accepted_cost(result: Result, ref: Mapping[str, str]) -> Result:
    """A polled result with the cost that the provider named when it accepted the job, if it names none at the end."""
    is_missing = result.status == "completed" and result.cost_usd is None
    usd = ref.get("cost_usd") if is_missing else None
    return result if usd is None else replace(result, cost_usd=usd)


def with_plausible_cost(candidate: Candidate, result: Result) -> Result:
    """The result without a cost that cannot be right: then our own price is charged, as if none was reported."""
    if result.cost_usd is None or _is_price(result.cost_usd):
        return result
    log.warning("wrong cost reported", provider=candidate.provider.slug, model=candidate.model.upstream)
    return replace(result, cost_usd=None)


def without_leaked_key(candidate: Candidate, result: Result) -> Result:
    """The result without an id, and with no prompt of a file, that repeats the gateway's credential: both are shown to
    callers.
    """
    key, upstream_id = candidate.key, result.upstream_id
    if not key:
        return result
    changes: dict[str, Any] = {}
    if upstream_id is not None and without_key(upstream_id, key) != upstream_id:
        changes["upstream_id"] = None
    if any(file.revised_prompt and key in file.revised_prompt for file in result.files):
        changes["files"] = tuple(_without_leaked_key(file, key) for file in result.files)
    return replace(result, **changes) if changes else result


def without_plain_key(data: bytes | bytearray, key: str) -> bytes | bytearray:
    """What a model wrote, without the gateway's credential as it is: a server may repeat what it was sent."""
    secret = key.encode()
    return data.replace(secret, _LEFT_OUT) if len(secret) >= _KEY_LENGTH_MIN and secret in data else data


def _without_leaked_key(file: File, key: str) -> File:
    prompt = file.revised_prompt
    if not prompt:
        return file
    return replace(file, revised_prompt=without_plain_key(prompt.encode(errors="replace"), key).decode())


def _ids(result: Result) -> list[Any]:
    return [*result.ref.values()] if result.upstream_id is None else [*result.ref.values(), result.upstream_id]


def _is_usable(file: File) -> bool:
    """Whether a file has bytes, or a URL that can be split."""
    data: Any = file.data
    url: Any = file.url
    if not isinstance(url if data is None else data, Buffer | str | Base64Text) or not isinstance(url, str | None):
        return False
    if url is not None and not _PLAIN_URL.fullmatch(url):
        try:
            urlsplit(url)
        except ValueError:
            return False
    return True


def _validated_file(file: File) -> File:
    revised_prompt: Any = file.revised_prompt
    return file if isinstance(revised_prompt, str | None) else replace(file, revised_prompt=None)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value < _AMOUNT_MAX


def _is_price(usd: Any) -> bool:
    try:
        return 0 <= Decimal(usd) < _AMOUNT_MAX
    except (ArithmeticError, TypeError, ValueError):
        return False


def _implausible(result: Result) -> dict[str, Any]:
    """The fields that are left out because their values cannot be right."""
    message: Any = result.message
    left_out: dict[str, Any] = {}
    if message is not None and not isinstance(message, str):
        left_out["message"] = None
    if result.progress is not None and not _is_amount(result.progress):
        left_out["progress"] = None
    if result.poll_after_seconds is not None and not _is_amount(result.poll_after_seconds):
        left_out["poll_after_seconds"] = None
    return left_out


# ------------------------------------------------------------------------------------------------------------- failures


def failure_kind(provider: Provider, reply: Reply) -> FailureKind:
    """Why a call failed: as the provider's own function says, or else by the HTTP status."""
    if provider.failure_kind:
        with suppress(*MALFORMED):
            if kind := provider.failure_kind(reply):
                return kind
    if reply.status == 429:
        return "busy"
    if reply.status == 503:
        return "down"
    # With a wrong credential or an unpaid bill, the request was not at fault: another provider may serve it.
    if reply.status in (401, 402, 403) or reply.status >= 500 or reply.status < 400:
        return "broken"
    return "rejected"


def failure_message(provider: Provider, reply: Reply, key: str = "") -> str:
    """The message for a call that failed. The provider's words about the gateway's credential are not shown."""
    if reply.status in (401, 402, 403) and failure_kind(provider, reply) == "broken":
        return f"{provider.name} did not accept the gateway's account."
    return provider_message(provider, reply, key) or f"{provider.name} responded with HTTP {reply.status}."


def provider_message(provider: Provider, reply: Reply, key: str) -> str:
    """The provider's own error message; empty if the reply has none, as when a proxy in between wrote it."""
    message: Any = None
    with suppress(*MALFORMED):
        message = provider.error_message(reply) if provider.error_message else reply.json["error"]["message"]
    return sanitize(message, key) if isinstance(message, str) else ""


def sanitize(text: str | None, key: str = "") -> str:
    """A provider's message as one line of at most 500 characters, without credentials. Only its beginning is read: some
    servers quote the whole body of a call.
    """
    line = _CONTROL_CHARACTERS.sub(" ", (text or "")[:_MESSAGE_CHARACTERS_READ]).strip()
    if key:
        line = without_key(line, key)
    return _SECRETS.sub("…", line)[:_MESSAGE_CHARACTERS_MAX]


def without_key(text: str, key: str) -> str:
    """The text without the credential in the forms in which servers repeat it: plain, without its prefix, in base64 as
    it is sent in Basic authentication, in URLs, and all of these in other case or with spaces in between.
    """
    return _key_pattern(key).sub("…", text) if len(key) <= _KEY_LENGTH_MAX else text.replace(key, "…")


@lru_cache(256)
def _key_pattern(key: str) -> re.Pattern[str]:
    tails = [key[match.end() :] for match in re.finditer(r"[-_:.]", key)]
    forms = {key, quote(key, safe=""), *(tail for tail in tails if len(tail) >= _TAIL_LENGTH_MIN)}
    for plain in (key, f":{key}", f"{key}:"):
        for encode in (b64encode, urlsafe_b64encode):
            forms.add(encode(plain.encode()).decode().rstrip("="))
    longest_first = sorted(forms, key=len, reverse=True)
    return re.compile("|".join(_GAP.join(map(re.escape, form)) for form in longest_first), re.IGNORECASE)


def retry_after_seconds(reply: Reply) -> float | None:
    """The Retry-After header in seconds, at most two minutes; None if there is none or it is a date."""
    try:
        seconds = float(reply.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(seconds, _RETRY_AFTER_SECONDS_MAX) if seconds >= 0 else None


def failed_without_files(candidate: Candidate, result: Result) -> Result:
    """The result; a success without a file counts as a failure, with what the provider bills for it."""
    if result.status != "completed" or result.files:
        return result
    message = f"{candidate.provider.name} reported success without a file."
    return msgspec.structs.replace(result, status="failed", failure_kind="unreadable", message=message)
