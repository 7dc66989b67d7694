"""The query parameters `label.…`, by which requests are filtered, and `group_by`, by which their sums are grouped."""

from collections.abc import Mapping

from penstock.accounts.labels import MAX_FILTERS, label_columns
from penstock.accounts.usage import GROUPS, LABEL_GROUP, MAX_GROUPS
from penstock.api.route import Query
from penstock.errors import InvalidRequest, quoted
from penstock.schema import Caller

LABEL_FILTER = Query(
    name="label.",
    type="labels",
    about="With this value of a label: `label.` and the name of a declared label, such as `label.customer=acme`; "
    f"up to {MAX_FILTERS}.",
)
GROUP_BY = Query(
    name="group_by",
    about="Also show the figures of each model, provider, key, kind, user, session or account at a vendor, or of each "
    f"value of a label such as `label:customer`; up to {MAX_GROUPS}, separated by a comma.",
)


def check_label_filter(caller: Caller, labels: Mapping[str, str]) -> None:
    """Raise InvalidRequest for a label that the organization has not declared, since nothing could match, and for too
    many labels.
    """
    label_columns(labels)
    for name in labels:
        _check_label(caller, name, f"label.{name[:64]}")


def read_group_by(caller: Caller, text: str | None) -> list[str]:
    """What to group by; raise InvalidRequest for what cannot be grouped by."""
    names = text.split(",") if text else []
    if len(names) > MAX_GROUPS or len(set(names)) < len(names):
        raise InvalidRequest(f"`group_by` may have up to {MAX_GROUPS} different groups.", param="group_by")
    for name in names:
        if name.startswith(LABEL_GROUP):
            _check_label(caller, name.removeprefix(LABEL_GROUP), "group_by")
        elif name not in GROUPS:
            allowed = quoted([*GROUPS, f"{LABEL_GROUP}NAME"])
            raise InvalidRequest(f"`group_by` must be one or two of {allowed}.", param="group_by")
    return names


def _check_label(caller: Caller, name: str, param: str) -> None:
    declared = [label.name for label in caller.declared_labels]
    if name not in declared:
        known = f"declared are {quoted(declared)}" if declared else "your organization has declared none"
        raise InvalidRequest(f"`{name[:64]}` is not a declared label; {known}.", param=param)
