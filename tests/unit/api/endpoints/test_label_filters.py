"""`group_by` and `label.…`: what can be grouped and filtered by."""

from typing import Any

import pytest

from penstock.api.endpoints.label_filters import check_label_filter, read_group_by
from penstock.errors import InvalidRequest
from penstock.schema import Caller, DeclaredLabel
from penstock.values import OrgId

CALLER = Caller(OrgId("org_1"), "key_1", declared_labels=(DeclaredLabel("customer"), DeclaredLabel("project")))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, []),
        ("model", ["model"]),
        ("label:customer,user", ["label:customer", "user"]),
        ("label:customer,label:project", ["label:customer", "label:project"]),
    ],
)
def test_one_or_two_groups(text: Any, names: list[str]) -> None:
    assert read_group_by(CALLER, text) == names


@pytest.mark.parametrize("text", ["colour", "label:", "label:colour", "model,model", "model,key,kind", "model,", ","])
def test_what_cannot_be_grouped_by_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_group_by(CALLER, text)
    assert caught.value.param == "group_by"


def test_only_declared_labels_filter() -> None:
    check_label_filter(CALLER, {"customer": "a", "project": "b"})
    with pytest.raises(InvalidRequest, match="declared are `customer`, `project`"):
        check_label_filter(CALLER, {"colour": "red"})
