"""What becomes of the Content Credentials of a call's outputs: the operator's setting, and what the call asks for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from penstock.errors import InvalidRequest, PermissionDenied
from penstock.package_extras import check_extra, has_extra
from penstock.schema import Provenance, ProvenanceMode
from penstock.settings import Settings

FIELD = "provenance"
HEADER = "x-service-provenance"
_MODES = get_args(ProvenanceMode)
_ALLOWED = "`off`, `keep`, `sign` or `required`"


def policy(field: Any, header: str | None, *, default: Provenance, can_sign: bool) -> Provenance:
    """The policy of a call, by its field, else by its header, else `default`, whose demands a call cannot lower.

    `can_sign` is false where the library is not installed. Raises InvalidRequest, and PermissionDenied for a call that
    would need less than is required of it.
    """
    if field is None and header is None:
        return default
    name = FIELD if field is not None else "X-Service-Provenance"
    asked = _from_field(field, default) if field is not None else _from_words(header or "", default, name)
    if default.required and not (asked.required and asked.mode != "off"):
        raise PermissionDenied("Every output here must have Content Credentials.", param=FIELD)
    _check(asked, name, can_sign=can_sign)
    return asked


def check_words(text: str) -> None:
    """Check the policy of an organization, such as `sign; required`. Raises InvalidRequest."""
    _check(_from_words(text, Provenance("keep"), FIELD), FIELD, can_sign=_can_sign())


def _check(asked: Provenance, name: str, *, can_sign: bool) -> None:
    if asked.mode == "sign" and not can_sign:
        raise InvalidRequest(f"`{name}` cannot be `sign`: this gateway has no library to sign with.", param=name)
    if asked.required and asked.mode == "off":
        raise InvalidRequest(f"`{name}` cannot be `required` and `off` at once.", param=name)


def _from_field(field: Any, default: Provenance) -> Provenance:
    if isinstance(field, str):
        return _from_words(field, default, FIELD)
    if not isinstance(field, Mapping):
        raise InvalidRequest(f"`{FIELD}` must be {_ALLOWED}, or an object.", param=FIELD)
    for name in field:
        if name not in ("mode", "required", "include"):
            raise InvalidRequest(f"`{FIELD}` may have `mode`, `required` and `include`, not `{name}`.", param=FIELD)
    mode = field.get("mode", default.mode)
    if mode not in _MODES:
        raise InvalidRequest("`provenance.mode` must be `off`, `keep` or `sign`.", param=FIELD)
    required = field.get("required", default.required)
    if not isinstance(required, bool):
        raise InvalidRequest("`provenance.required` must be true or false.", param=FIELD)
    include = field.get("include", [])
    if include not in ([], ["prompt"]):
        raise InvalidRequest('`provenance.include` may be `["prompt"]`.', param=FIELD)
    return Provenance(mode, required, bool(include))


def _from_words(text: str, default: Provenance, name: str) -> Provenance:
    """Words such as `sign; required`."""
    mode = default.mode
    required = default.required
    for word in text.replace(",", ";").split(";"):
        match word.strip().lower():
            case "off" | "keep" | "sign" as asked:
                mode = asked
            case "required":
                required = True
            case _:
                raise InvalidRequest(f"`{name}` must be {_ALLOWED}, such as `sign; required`.", param=name)
    return Provenance(mode, required)


@cache  # every call asks
def _can_sign() -> bool:
    return has_extra("provenance")


def operators_policy(settings: Settings) -> Provenance:
    """What the settings ask for. Raises ExtraMissing where they ask to sign and nothing can."""
    can_sign = _can_sign()
    if settings.provenance == "sign" and not can_sign:
        check_extra("provenance", "Signing outputs")
    return Provenance(settings.provenance or ("sign" if can_sign else "keep"), settings.provenance_required)


def provenance_of_call(
    field: Any, headers: Mapping[str, str], settings: Settings, of_org: str | None = None
) -> Provenance:
    """The policy of a call: what it asks for, else what its organization asks for, else the operator's.

    Raises InvalidRequest, and PermissionDenied where the operator or the organization requires more.
    """
    default = operators_policy(settings)
    if of_org is not None:
        default = _of_org(of_org, default, can_sign=_can_sign())
    asked = policy(field, headers.get(HEADER), default=default, can_sign=_can_sign())
    if asked.prompt and settings.payloads == "none":
        raise InvalidRequest("`provenance.include` may not be `prompt` where no prompts are stored.", param=FIELD)
    return asked


@cache  # every call asks
def _of_org(words: str, operators: Provenance, *, can_sign: bool) -> Provenance:
    """The policy of an organization, which was checked when it was stored; it lowers no demand of the operator."""
    found = _from_words(words, operators, FIELD)
    if (found.mode == "off" and found.required) or (found.mode == "sign" and not can_sign):
        return Provenance(operators.mode, found.required)
    return found
