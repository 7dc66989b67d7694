"""Check the fields of a JSON body of the native API against their rows."""

from collections.abc import Mapping
from typing import Any

from penstock.errors import InvalidRequest, quoted
from penstock.fields import Field, check_field


def checked_fields(body: Mapping[str, Any], fields: Mapping[str, Field], *, keeps_null: bool = False) -> dict[str, Any]:
    """Return the fields of a body, without those that are null, unless `keeps_null`.

    Raises InvalidRequest for an unknown field, a bad value or a missing field.
    """
    found: dict[str, Any] = {}
    for name, value in body.items():
        row = fields.get(name)
        if row is None:
            raise InvalidRequest(f"`{name[:64]}` is not a field here; allowed are {quoted(fields)}.", param=name[:64])
        if value is None:
            if keeps_null:
                found[name] = None
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # in JSON, 3.0 is the same number as 3
        check_field(row, value)
        found[name] = value
    for row in fields.values():
        if row.required and found.get(row.name) is None:
            raise InvalidRequest(f"`{row.name}` is required.", param=row.name)
    return found
