"""Read where a call wants copies of its outputs to go."""

from collections.abc import Mapping
from typing import Any

from penstock.destinations.destinations import Destination, Destinations
from penstock.destinations.places import check_path
from penstock.errors import InvalidRequest, NotFound
from penstock.schema import Delivery
from penstock.values import OrgId

_NOWHERE = "none"
_PARTS = ("bucket", "path")


def read_delivery(
    destinations: Destinations, org_id: OrgId, deliver_to: Any, is_required: bool | None
) -> Delivery | None:
    """Where the outputs of a call go: where `deliver_to` says, else where its organization has them sent.

    Raises InvalidRequest, which names the field.
    """
    if deliver_to == _NOWHERE:
        destination, path = None, None
    elif deliver_to is None:
        destination, path = destinations.default_of(org_id), None
    else:
        destination, path = _named(destinations, org_id, deliver_to)
    if destination is None:
        if is_required:
            message = "`deliver_required` needs a destination: name one in `deliver_to`."
            raise InvalidRequest(message, param="deliver_required")
        return None
    required = destination.is_required if is_required is None else is_required
    return Delivery(destination.id, path or destination.path, required)


def _named(destinations: Destinations, org_id: OrgId, deliver_to: Any) -> tuple[Destination, str | None]:
    """The destination that a call names, and the path if it has one."""
    parts = deliver_to if isinstance(deliver_to, Mapping) else {"bucket": deliver_to}
    for name, value in parts.items():
        if name not in _PARTS or not isinstance(value, str):
            message = "`deliver_to` must be the id of a destination, `none`, or an object of `bucket` and `path`."
            raise InvalidRequest(message, param="deliver_to")
    try:
        destination = destinations.get(org_id, parts.get("bucket", ""))
    except NotFound:
        message = "`deliver_to` must name a destination of your organization by its id, `dst_…`."
        raise InvalidRequest(message, param="deliver_to") from None
    return destination, check_path(parts["path"], "deliver_to.path") if "path" in parts else None
