"""Labels of calls: which ones an organization has declared, and those that a call has by field, header and key."""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec

from penstock.audit_log import Note, changed, write_audited
from penstock.cache import Cache
from penstock.clock import Clock
from penstock.errors import InvalidRequest, NotFound, quoted
from penstock.schema import EACH_VALUE, Call, DeclaredLabel
from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId

_log = logging.getLogger(__name__)
HEADER = "x-service-labels"
MAX_LABELS = 10
MAX_VALUES = 10_000  # of a label in an organization; calls with further values have the value OTHER
MAX_FILTERS = 2
OTHER = "__other__"
MAX_VALUE_CHARS = 128
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_NAME_RULE = "a lowercase letter and up to 31 lowercase letters, digits, `_`, `.` and `-`"
_MAX_BUDGETS = 200  # that are read with a key, as the query says
_MAX_CACHED = 1000  # labels whose values are known
_CACHE_SECONDS = 3600.0

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, str]).decode
_decode_budgets = msgspec.json.Decoder(list[tuple[str, str]]).decode
_decode_declared = msgspec.json.Decoder(tuple[DeclaredLabel, ...]).decode


# ------------------------------------------------------------------------------------------------------- one call


def call_labels(call: Call, field: Any) -> dict[str, str]:
    """The labels of a call with this value in its field `labels`: the key's win over the field, the field over the
    header. Raises InvalidRequest for one that is malformed, not declared or missing.
    """
    caller = call.caller
    header = call.headers.get(HEADER)
    if field is None and not header and not caller.labels and not caller.declared_labels:
        return {}
    given = dict(_header_labels(header)) if header else {}
    if field is not None:
        given |= checked_labels(field)
    declared = {label.name: label for label in caller.declared_labels}
    given |= {name: value for name, value in caller.labels.items() if name in declared}
    if len(given) > MAX_LABELS:
        raise InvalidRequest(f"A call may have at most {MAX_LABELS} labels.", param="labels")
    for name, value in given.items():
        _check_declared(name, value, declared)
    for label in declared.values():
        if label.required and label.name not in given:
            message = f"`labels.{label.name}` is required by your organization: send it in `labels` or in the header "
            raise InvalidRequest(f"{message}X-Service-Labels.", param=f"labels.{label.name}")
    return given


def usable_labels(call: Call, field: Any) -> dict[str, str]:
    """The labels of a call that was refused: none if they are the reason."""
    try:
        return call_labels(call, field)
    except InvalidRequest:
        return {}


def checked_labels(value: Any, param: str = "labels") -> dict[str, str]:
    """Return an object of labels as it is; raise InvalidRequest for a malformed one."""
    if not isinstance(value, Mapping) or len(value) > MAX_LABELS:
        raise InvalidRequest(f"`{param}` must be an object of at most {MAX_LABELS} names and values.", param=param)
    for name, text in value.items():
        check_name(name, param)
        _check_value(name, text, param)
    return dict(value)


def check_name(name: Any, param: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(f"`{param}` must have names of {_NAME_RULE}, such as `customer`.", param=param)


def _check_value(name: str, value: Any, param: str) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_VALUE_CHARS or not value.isprintable():
        message = f"`{param}.{name}` must have 1 to {MAX_VALUE_CHARS} printable characters."
        raise InvalidRequest(message, param=f"{param}.{name}")


@lru_cache(maxsize=256)  # a customer's calls have the same header
def _header_labels(header: str) -> Mapping[str, str]:
    """The labels of a header such as `customer=acme,project=spring%202026`."""
    labels: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        name, separator, value = pair.partition("=")
        if not separator or name in labels:
            message = "The header X-Service-Labels must be like `customer=acme,project=spring`, each name once."
            raise InvalidRequest(message, param="X-Service-Labels")
        try:
            labels[name] = unquote(value, errors="strict")
        except UnicodeDecodeError:
            message = "The header X-Service-Labels must have percent-encoded UTF-8."
            raise InvalidRequest(message, param="X-Service-Labels") from None
    return checked_labels(labels, "X-Service-Labels")


def _check_declared(name: str, value: str, declared: Mapping[str, DeclaredLabel]) -> None:
    label = declared.get(name)
    if label is None:
        known = f"declared are {quoted(declared)}" if declared else "it has declared none"
        message = f"`labels.{name}` is not a label that your organization has declared; {known}."
        raise InvalidRequest(message, param=f"labels.{name}")
    if label.values is not None and value not in label.values:
        message = f"`labels.{name}` must be one of {quoted(label.values)}."
        raise InvalidRequest(message, param=f"labels.{name}")


# ---------------------------------------------------------------------------------------------------------- storing


def encode_labels(labels: Mapping[str, str]) -> str | None:
    return _encode(labels).decode() if labels else None


def stored_label(name: str, value: str) -> str:
    """What the stored labels of a request contain if, and only if, it has this label: quotes in values are escaped."""
    return encode_labels({name: value})[1:-1]  # type: ignore[index]  # there is one label


def label_columns(labels: Mapping[str, str]) -> Row:
    """The parameters by which queries filter by labels; raise InvalidRequest for too many."""
    if len(labels) > MAX_FILTERS:
        raise InvalidRequest(f"At most {MAX_FILTERS} labels can be filtered by at once.", param="label.")
    texts = [stored_label(name, value) for name, value in labels.items()]
    first, second, *_ = [*texts, None, None]
    return {"has_label": first, "has_second": second}


def decode_labels(stored: str | None) -> dict[str, str]:
    return {} if stored is None else _decode(stored)


def label_rows(requests: Iterable[Row]) -> list[Row]:
    """The rows for `add_request_label` of these rows of requests."""
    return [
        {"org_id": row["org_id"], "name": name, "value": value, "request_id": row["id"]}
        for row in requests
        if row["labels"]
        for name, value in _decode(row["labels"]).items()
    ]


class LabelValues:
    """Knows the values that labels have had, so that a label with a value per call cannot have any number of them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._known: Cache[tuple[OrgId, str], set[str]] = Cache(clock.monotonic, _MAX_CACHED)

    async def limited(self, org_id: OrgId, labels: dict[str, str]) -> dict[str, str]:
        """The labels of a call that is accepted now; a new value beyond the limit is replaced by OTHER.

        Values that other processes have added since the last hour are not counted, so the limit is not exact.
        """
        for name, value in labels.items():
            known = self._known.get((org_id, name))
            if known is None:
                rows = await self._store.slow("list_label_values", org_id=org_id, name=name, limit=MAX_VALUES)
                known = {row["value"] for row in rows}
                self._known.put((org_id, name), known, _CACHE_SECONDS)
            if value not in known:
                if len(known) >= MAX_VALUES:
                    if OTHER not in known:
                        known.add(OTHER)
                        _log.warning("label %s of %s has too many values: further ones count as one", name, org_id)
                    labels = {**labels, name: OTHER}
                else:
                    known.add(value)
        return labels


# -------------------------------------------------------------------------------------------------------- declaring


def decode_declared(stored: str | None) -> tuple[DeclaredLabel, ...]:
    return () if stored is None else _decode_declared(stored)


def budgeted_labels(declared: Iterable[DeclaredLabel], budgets: str | None) -> frozenset[tuple[str, str]]:
    """The names and values that have budgets, from a JSON list of all that an organization has set. Of an organization
    with many, each value of a label that may have budgets counts as one that has.
    """
    names = {label.name for label in declared if label.budget}
    found = _decode_budgets(budgets) if names and budgets else []
    if len(found) > _MAX_BUDGETS:
        return frozenset((name, EACH_VALUE) for name in names)
    return frozenset(pair for pair in found if pair[0] in names)


def checked_declarations(value: Any) -> tuple[DeclaredLabel, ...]:
    """Return the labels that an organization declares; raise InvalidRequest for a bad list."""
    param = "declared_labels"
    if not isinstance(value, list) or len(value) > MAX_LABELS:
        raise InvalidRequest(f"`{param}` must be a list of at most {MAX_LABELS} labels.", param=param)
    try:
        labels = msgspec.convert(value, tuple[DeclaredLabel, ...])
    except msgspec.ValidationError:
        rule = "`name`, and perhaps with `required`, `budget` (true or false) and `values` (a list of texts, or null)"
        raise InvalidRequest(f"`{param}` must be a list of objects with a {rule}.", param=param) from None
    for label in labels:
        check_name(label.name, f"{param}.name")
        if label.values is not None and not 1 <= len(label.values) <= MAX_VALUES:
            raise InvalidRequest(f"`{param}.values` must have 1 to {MAX_VALUES} values, or be null.", param=param)
        for text in label.values or ():
            _check_value(label.name, text, param)
    if len({label.name for label in labels}) < len(labels):
        raise InvalidRequest(f"`{param}` must have each name once.", param=param)
    return labels


async def read_declared(store: Store | Transaction, org_id: OrgId) -> tuple[DeclaredLabel, ...]:
    """The labels that an organization has declared; raise NotFound if there is no such organization."""
    row = await store.one("get_declared_labels", org_id=org_id)
    if row is None:
        raise NotFound(f"No such organization: {org_id}.")
    return decode_declared(row["declared_labels"])


async def declare(store: Store, clock: Clock, org_id: OrgId, labels: tuple[DeclaredLabel, ...]) -> None:
    """Replace the declared labels of an organization. Every process notices within two seconds; the labels of requests
    that were made before stay.
    """
    stored = msgspec.json.encode(labels).decode() if labels else None

    async def write(tx: Transaction, note: Note) -> None:
        former = {label.name: label for label in await read_declared(tx, org_id)}
        await tx.run("set_declared_labels", org_id=org_id, declared_labels=stored)
        note(changed("labels.declared", org_id, org_id, former, {label.name: label for label in labels}))

    await write_audited(store, clock.now_ms(), write)


async def check_declared_names(store: Store, org_id: OrgId, names: Iterable[str], param: str) -> None:
    """Raise InvalidRequest for a name that the organization has not declared."""
    declared = {label.name: label for label in await read_declared(store, org_id)}
    for name in names:
        if name not in declared:
            known = f"declared are {quoted(declared)}" if declared else "your organization has declared none"
            raise InvalidRequest(f"`{name}` is not a declared label; {known}.", param=param)
