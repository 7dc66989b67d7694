"""JSON Schemas of responses about the library: outputs, and the URLs by which they are shared."""

from collections.abc import Mapping

from penstock.accounts.requests import KINDS
from penstock.api.openapi.schema_parts import (
    CREDENTIALS,
    FLAG,
    INTEGER,
    TEXT,
    TIME,
    Schema,
    always,
    array,
    closed_object,
    list_of,
    one_of,
    or_null,
)

_LIBRARY_OUTPUT = closed_object(
    {
        "id": TEXT,
        "object": always("output"),
        "request_id": TEXT,
        "created_at": TIME,
        "kind": or_null(one_of(*KINDS)),
        "model": or_null(TEXT),
        "provider": or_null(TEXT),
        "key_id": TEXT,
        "key_name": or_null(TEXT),
        "prompt": or_null(TEXT),
        "revised_prompt": or_null(TEXT),
        "url": TEXT,
        "thumbnail_url": or_null(TEXT),
        "content_type": TEXT,
        "size_bytes": INTEGER,
        "width": or_null(INTEGER),
        "height": or_null(INTEGER),
        "content_credentials": or_null(CREDENTIALS),
        "favorite": FLAG,
        "expires_at": TIME,
        "made_from": array(closed_object({"output_id": TEXT, "request_id": TEXT})),
        "used_in": array(TEXT),
    }
)

LIBRARY_SCHEMAS: Mapping[str, Schema] = {
    "Output": _LIBRARY_OUTPUT,
    "OutputList": list_of("Output"),
    "OutputShare": closed_object(
        {"object": always("output.share"), "output_id": TEXT, "url": TEXT, "expires_at": TIME}
    ),
}
