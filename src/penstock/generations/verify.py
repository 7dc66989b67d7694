"""Say where a file comes from: whether this gateway delivered it, and what its Content Credentials say."""

from typing import Any

import structlog

from penstock.errors import InvalidRequest, Unavailable
from penstock.fields import Field, UploadedFile, field_table, text_field
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.base64_pieces import Base64Text, is_data_uri
from penstock.long_bodies.buffers import Buffer
from penstock.net import guard
from penstock.provenance.reading import FileOrigin, read_origin
from penstock.schema import Call, Response
from penstock.values import OrgId

log = structlog.get_logger()

MAX_BYTES = 50_000_000
FIELDS = field_table(
    Field(name="file", types=("file", "string"), about="The file: in a form, or as a data URI in JSON."),
    text_field("url", "HTTPS URL of the file.", max_length=2048),
)


async def verify_file(gateway: Gateway, call: Call) -> Response:
    """Raises InvalidRequest for a file that cannot be read, and Unavailable where the library is not installed."""
    org_id = call.caller.org_id
    origin = await _read_origin(gateway, await _read(gateway, call), org_id)
    manifest = origin.credentials["manifest"] if origin.credentials and origin.vouched else None
    request_id = await find_request(gateway, org_id, origin.sha256, manifest)
    shown = origin.shown(is_known=request_id is not None)
    return Response(json={"object": "verification", **shown, "request_id": request_id})


async def find_request(gateway: Gateway, org_id: OrgId, sha256: bytes | None, manifest: str | None) -> str | None:
    """The request that made a file, by the file's digest or by the name of its manifest: a digest changes with any
    byte, also with those that no signature covers.
    """
    row = None
    if sha256:
        row = await gateway.store.one("find_seal_by_digest", org_id=org_id, sha256=sha256)
    if row is None and manifest:
        row = await gateway.store.one("find_seal_by_manifest", org_id=org_id, manifest=manifest)
    return row["request_id"] if row else None


async def _read(gateway: Gateway, call: Call) -> Buffer:
    fields: dict[str, Any] = dict(call.form) if call.is_form else dict(call.json or {})
    for name in fields:
        if name not in FIELDS:
            raise InvalidRequest(f"`{name}` is not a field of this call; it takes `file` or `url`.", param=name)
    file = fields.get("file")
    url = fields.get("url")
    if (file is None) == (url is None):
        raise InvalidRequest("Send `file` or `url`, one of them.", param="file")
    if url is not None:
        if not isinstance(url, str):
            raise InvalidRequest("`url` must be a string.", param="url")
        source: Any = guard.check_media_url(url, "url", guard.egress_rules(gateway.settings))
        return await gateway.media_transfer.sources.read(source, "url", MAX_BYTES, call.caller.org_id)
    if not isinstance(file, UploadedFile | Base64Text) and not (isinstance(file, str) and is_data_uri(file)):
        raise InvalidRequest("`file` must be a file in a form, or a data URI.", param="file")
    data = await gateway.media_transfer.sources.read(file, "file", MAX_BYTES, call.caller.org_id)
    if len(data) > MAX_BYTES:
        raise InvalidRequest(f"`file` may have at most {MAX_BYTES} bytes.", param="file")
    return data


async def _read_origin(gateway: Gateway, data: Buffer, org_id: OrgId) -> FileOrigin:
    signing = gateway.sealer.signing
    if signing is None:
        raise Unavailable("This gateway has no library to read Content Credentials.")
    trust = {"anchors": signing.anchors, "own_roots": signing.own_roots}
    try:
        return await read_origin(data, gateway.worker_pool, **trust, for_org=org_id)
    except WorkFailed as error:
        log.warning("file not verified", reason=error.message)
        raise InvalidRequest(f"`file` could not be read: {error.message}", param="file") from None
