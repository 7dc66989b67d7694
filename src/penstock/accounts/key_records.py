"""The row of an API key, the record that the API shows of it, and the check of its values."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.accounts.labels import checked_labels, decode_labels, encode_labels
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.store.base import Row, Store
from penstock.store.related import read_related
from penstock.values import IMAGE_FORMS, REPLAY_MODES, ZERO, Nanos, OrgId, dollars, iso, nanos

ADMIN = "admin"  # manages the keys and the webhooks of its own organization
OPERATOR = "operator"  # sees and manages the whole installation; granted by the command line only
READ = "read"  # reads figures and records without what was asked and made; granted by the command line only
METRICS = "metrics"  # reads /metrics, as an operator does; granted by the command line only
FAULTS = "faults"  # may ask for faults in its own calls
SCOPES = (ADMIN, OPERATOR, METRICS, FAULTS, READ)
GRANTED_BY_API = (ADMIN, FAULTS)
_SESSION = "/v1/session"
_FOR_READERS = (  # what a key with the scope `read` may get
    "/compat/v1/models",
    "/compat/v1/models/{model:path}",
    "/v1/requests",
    "/v1/requests/{request_id}",
    "/v1/usage",
    "/v1/usage/failures",
    "/v1/usage/forecast",
    "/v1/usage/focus",
    "/v1/labels",
    "/v1/label-budgets",
    "/v1/balance",
    "/v1/key",
    "/v1/keys",
    "/v1/keys/{key_id}",
)
_FOR_SCRAPERS = ("/metrics", "/v1/key")  # what a key may call that has no scope but `metrics`

_MAX_NAME_CHARS = 200
_MAX_COUNT = 2**31 - 1
_MAX_MODELS = 200
_MAX_MODEL_CHARS = 256


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the table `keys` that are shown."""

    id: str
    name: str | None
    last_four: str
    status: str
    created_at_ms: int
    revoked_at_ms: int | None
    scopes: str = ""
    requests_per_minute: int | None = None
    concurrent_requests: int | None = None
    nanos_per_day: int | None = None
    nanos_per_month: int | None = None
    models: str | None = None
    replay_mode: str | None = None
    image_response_format: str | None = None
    expires_at_ms: int | None = None
    labels: str | None = None
    user_id: str | None = None  # whose key it is
    owner_name: str | None = None  # the name of that person, or the e-mail address


class KeyUsage(msgspec.Struct, frozen=True):
    """When a key was last used, and what it spent this day and this month (UTC)."""

    last_used_at_ms: int | None = None
    spent_today: Nanos = ZERO
    spent_this_month: Nanos = ZERO


async def read_key_names(store: Store, key_ids: Sequence[str], org_id: OrgId) -> dict[str, str | None]:
    """The names of keys of an organization, by their ids; those of people are followed by the person's."""
    rows = await read_related(store, "list_names_of_keys", key_ids, org_id=org_id)
    return {row["id"]: _name_with_owner(row["name"], row["owner_name"]) for row in rows}


def _name_with_owner(name: str | None, owner: str | None) -> str | None:
    return f"{name} ({owner})" if name and owner else name or owner


def key_record(row: KeyRow, usage: KeyUsage) -> dict[str, Any]:
    """Return a row as the key record of the interface, with its limits and what it has used of them."""
    return {
        "id": row.id,
        "object": "key",
        "name": row.name,
        "owner": None if row.user_id is None else {"id": row.user_id, "name": row.owner_name},
        "last_four": row.last_four,
        "status": row.status,
        "created_at": iso(row.created_at_ms),
        "revoked_at": _time(row.revoked_at_ms),
        "scopes": row.scopes.split(),
        "requests_per_minute": row.requests_per_minute,
        "concurrent_requests": row.concurrent_requests,
        "usd_per_day": _amount(row.nanos_per_day),
        "usd_per_month": _amount(row.nanos_per_month),
        "models": decode_models(row.models),
        "replay_mode": row.replay_mode,
        "image_response_format": row.image_response_format,
        "expires_at": _time(row.expires_at_ms),
        "labels": decode_labels(row.labels),
        "last_used_at": _time(usage.last_used_at_ms),
        "spent_today": dollars(usage.spent_today),
        "spent_this_month": dollars(usage.spent_this_month),
    }


def key_facts(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a key that are set, for the audit log."""
    facts = {name: columns.get(column) for name, (column, _) in _OPTIONS.items()}
    facts["scopes"] = str(facts["scopes"] or "").split()
    for name in ("usd_per_day", "usd_per_month"):
        facts[name] = None if facts[name] is None else f"{dollars(facts[name]):f}"
    facts["models"] = decode_models(facts["models"])
    facts["expires_at"] = _time(facts["expires_at"])
    facts["labels"] = decode_labels(facts["labels"])
    return {name: value for name, value in facts.items() if value not in (None, [], {})}


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso(at_ms)


def _amount(amount: int | None) -> Any:
    return None if amount is None else dollars(Nanos(amount))


def decode_models(models: str | None) -> list[str] | None:
    return None if models is None else msgspec.json.decode(models, type=list[str])


# ------------------------------------------------------------------------------------------------------ checked values


def key_columns(options: Mapping[str, Any]) -> Row:
    """Return the columns for the options of a key that are given, checked. Raises InvalidRequest.

    The values may be of any type, because they may come from a JSON body; None means no limit.
    """
    return {column: check(name, options[name]) for name, (column, check) in _OPTIONS.items() if name in options}


def _checked_name(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _MAX_NAME_CHARS or not value.isprintable():
        raise InvalidRequest(f"`{name}` must be at most {_MAX_NAME_CHARS} printable characters.", param=name)
    return value


def _checked_scopes(name: str, scopes: Any) -> str:
    """Return the scopes as stored: sorted and separated by spaces."""
    if not isinstance(scopes, list | tuple | set | frozenset) or any(scope not in SCOPES for scope in scopes):
        allowed = ", ".join(f"`{scope}`" for scope in SCOPES)
        raise InvalidRequest(f"`{name}` must be a list; its items may be {allowed}.", param=name)
    return " ".join(sorted(set(scopes)))


def granted_scopes(stored: str) -> frozenset[str]:
    """What a key with these scopes, separated by spaces, may do: an operator also reads the metrics."""
    scopes = frozenset(stored.split())
    return scopes | {METRICS} if OPERATOR in scopes else scopes


def check_scope(scopes: frozenset[str], access: str, path: str, method: str = "GET") -> None:
    """Raise PermissionDenied if a key with these scopes may not call a route with this access at this path."""
    if READ in scopes and path != _SESSION and (method != "GET" or path not in _FOR_READERS):
        raise PermissionDenied("The `read` scope is for models, records, figures and the list of keys only.")
    if access in SCOPES and access not in scopes:
        raise PermissionDenied(f"This call needs a key with the `{access}` scope.")
    if scopes == {METRICS} and path not in _FOR_SCRAPERS:
        raise PermissionDenied("A key that has no scope but `metrics` can read the metrics only.")


def _checked_count(name: str, count: Any) -> int | None:
    if count is None:
        return None
    if type(count) is not int or not 1 <= count <= _MAX_COUNT:
        raise InvalidRequest(f"`{name}` must be a whole number from 1 to {_MAX_COUNT}.", param=name)
    return count


def _checked_nanos(name: str, usd: Any) -> int | None:
    if usd is None:
        return None
    try:
        amount = nanos(usd)
        if not 0 <= amount < 2**63:
            raise ValueError
    except (ValueError, TypeError, ArithmeticError):
        raise InvalidRequest(f'`{name}` must be an amount in dollars such as "2.50".', param=name) from None
    return amount


def _one_of(*choices: str) -> Callable[[str, Any], str | None]:
    """A check of an option that is one of these, or None."""

    def check(name: str, value: Any) -> str | None:
        if value is None:
            return None
        if value not in choices:
            raise InvalidRequest(f"`{name}` must be one of: {', '.join(choices)}.", param=name)
        return str(value)

    return check


def _checked_labels(name: str, labels: Any) -> str | None:
    return None if labels is None else encode_labels(checked_labels(labels, name))


def _checked_models(name: str, models: Any) -> str | None:
    """Return the models as stored: a JSON list."""
    if models is None:
        return None
    is_list = isinstance(models, list | tuple) and 1 <= len(models) <= _MAX_MODELS
    if not is_list or not all(_is_model(model) for model in models):
        raise InvalidRequest(
            f"`{name}` must be a list of 1 to {_MAX_MODELS} model ids; one may end with `*`, as in `openai/*`.",
            param=name,
        )
    return msgspec.json.encode(list(dict.fromkeys(models))).decode()


def _is_model(model: Any) -> bool:
    return (
        isinstance(model, str) and 1 <= len(model) <= _MAX_MODEL_CHARS and model.isprintable() and "*" not in model[:-1]
    )


def _checked_expiry(name: str, expires_at: Any) -> int | None:
    """Return the time in milliseconds."""
    if expires_at is None:
        return None
    try:
        time = datetime.fromisoformat(expires_at)
        at_ms = int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        message = f"`{name}` must be an ISO 8601 date and time such as `2027-01-31T12:00:00Z`."
        raise InvalidRequest(message, param=name) from None
    return max(0, at_ms)


_OPTIONS = {
    "name": ("name", _checked_name),
    "scopes": ("scopes", _checked_scopes),
    "requests_per_minute": ("requests_per_minute", _checked_count),
    "concurrent_requests": ("concurrent_requests", _checked_count),
    "usd_per_day": ("nanos_per_day", _checked_nanos),
    "usd_per_month": ("nanos_per_month", _checked_nanos),
    "models": ("models", _checked_models),
    "expires_at": ("expires_at_ms", _checked_expiry),
    "replay_mode": ("replay_mode", _one_of(*REPLAY_MODES)),
    "image_response_format": ("image_response_format", _one_of(*IMAGE_FORMS)),
    "labels": ("labels", _checked_labels),
}
OPTIONS = tuple(_OPTIONS)
