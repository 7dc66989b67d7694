"""What a call may ask of the Content Credentials of its outputs."""

from typing import Any

import pytest

from penstock import package_extras
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.package_extras import ExtraMissing
from penstock.provenance import policy
from penstock.provenance.policy import check_words, operators_policy, provenance_of_call
from penstock.schema import Provenance
from penstock.settings import Settings

KEEP = Settings(provenance="keep")


@pytest.mark.parametrize(
    ("field", "header", "expected"),
    [
        (None, None, Provenance("keep")),
        ("off", None, Provenance("off")),
        ("sign; required", None, Provenance("sign", required=True)),
        (None, "sign, required", Provenance("sign", required=True)),
        ("keep", "sign", Provenance("keep")),
        ({"mode": "sign", "include": ["prompt"]}, None, Provenance("sign", prompt=True)),
        ({"required": True}, None, Provenance("keep", required=True)),
        ({}, "off", Provenance("keep")),
    ],
)
def test_the_field_counts_before_the_header_and_the_header_before_the_setting(
    field: Any, header: str | None, expected: Provenance
) -> None:
    headers = {"x-service-provenance": header} if header else {}
    assert provenance_of_call(field, headers, KEEP) == expected


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("maybe", "must be `off`, `keep`, `sign` or `required`"),
        ({"mode": "maybe"}, "`provenance.mode` must be `off`, `keep` or `sign`"),
        ({"required": "yes"}, "`provenance.required` must be true or false"),
        ({"include": ["key"]}, "`provenance.include` may be"),
        ({"colour": 1}, "not `colour`"),
        ("off; required", "cannot be `required` and `off` at once"),
    ],
)
def test_what_is_not_allowed_is_said(field: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as problem:
        provenance_of_call(field, {}, KEEP)
    assert problem.value.param == "provenance"


def test_a_wrong_header_is_named() -> None:
    with pytest.raises(InvalidRequest, match="`X-Service-Provenance` must be"):
        provenance_of_call(None, {"x-service-provenance": "maybe"}, KEEP)


def test_what_the_operator_requires_cannot_be_turned_off() -> None:
    required = Settings(provenance="sign", provenance_required=True)
    assert provenance_of_call("keep", {}, required) == Provenance("keep", required=True)
    for field in ({"required": False}, "off"):
        with pytest.raises(PermissionDenied) as problem:
            provenance_of_call(field, {}, required)
        assert problem.value.param == "provenance"


@pytest.mark.parametrize(
    ("operators", "words", "field", "expected"),
    [
        (KEEP, "sign", None, Provenance("sign")),
        (KEEP, "sign", "off", Provenance("off")),
        (KEEP, "required", "sign", Provenance("sign", required=True)),
        (KEEP, "off", {"mode": "keep"}, Provenance("keep")),
        (Settings(provenance="sign", provenance_required=True), "off", None, Provenance("sign", required=True)),
        (Settings(provenance="sign", provenance_required=True), "keep", None, Provenance("keep", required=True)),
    ],
)
def test_an_organization_counts_before_the_setting_and_lowers_nothing(
    operators: Settings, words: str, field: Any, expected: Provenance
) -> None:
    assert provenance_of_call(field, {}, operators, words) == expected


def test_what_an_organization_requires_its_calls_cannot_turn_off() -> None:
    for field in ("off", {"required": False}):
        with pytest.raises(PermissionDenied):
            provenance_of_call(field, {}, KEEP, "sign; required")


def test_the_words_of_an_organization_are_checked() -> None:
    check_words("keep; required")
    for words in ("maybe", "off; required"):
        with pytest.raises(InvalidRequest, match="`provenance`"):
            check_words(words)


def test_a_prompt_is_not_written_into_files_where_none_is_stored() -> None:
    with pytest.raises(InvalidRequest, match="may not be `prompt`"):
        provenance_of_call({"include": ["prompt"]}, {}, Settings(provenance="sign", payloads="none"))


def test_without_the_library_nothing_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert operators_policy(Settings()) == Provenance("sign")
    monkeypatch.setattr(policy, "_can_sign", lambda: False)
    monkeypatch.setattr(package_extras, "has_extra", lambda extra: False)
    assert operators_policy(Settings()) == Provenance("keep")
    with pytest.raises(ExtraMissing, match=r"Signing outputs needs an extra: pip install '.\[provenance\]'"):
        operators_policy(Settings(provenance="sign"))
    with pytest.raises(InvalidRequest, match="this gateway has no library to sign with"):
        provenance_of_call("sign", {}, Settings())
