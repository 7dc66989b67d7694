"""Say where a file comes from: whether this gateway delivered it, and what its Content Credentials say."""

from typing import Any

import structlog

from penstock.errors import InvalidRequest, Unavailable
from penstock.fields import Field, Table, UploadedFile, field_table, text_field
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.long_bodies.base64_pieces import Base64Text, is_data_uri
from penstock.long_bodies.buffers import Buffer
from penstock.net import checked_urls
from penstock.provenance.reading import FileOrigin, read_origin
from penstock.schema import Call, Response
from penstock.values import OrgId

log = structlog.get_logger()

MAX_BYTES = 50_000_000
_FILE = Field(name="file", types=("file", "string"), about="The file: in a form, or as a data URI in JSON.")
FIELDS = field_table(_FILE, text_field("url", "HTTPS URL of the file.", max_length=2048))
PUBLIC_FIELDS = field_table(_FILE)
_ANYBODY = OrgId("")


async def verify_file(gateway: Gateway, call: Call) -> Response:
    """Raises InvalidRequest for a file that cannot be read, and Unavailable where the library is not installed."""
    org_id = call.caller.org_id
    origin = await _read_origin(gateway, await _read(gateway, call, FIELDS), org_id)
    manifest = origin.credentials["manifest"] if origin.credentials and origin.vouched else None
    request_id = await find_request(gateway, org_id, origin.sha256, manifest)
    shown = origin.shown(is_known=request_id is not None)
    return Response(json={"object": "verification", **shown, "request_id": request_id})


async def verify_for_anybody(gateway: Gateway, call: Call) -> Response:
    """What `verify_file` says, without the names of requests; known is a file that has our own signature.

    Raises as `verify_file` does.
    """
    origin = await _read_origin(gateway, await _read(gateway, call, PUBLIC_FIELDS), _ANYBODY)
    shown = origin.shown(is_known=origin.is_own)
    for link in (shown["credentials"] or {}).get("chain", ()):
        link.pop("request_id", None)
    return Response(json={"object": "verification", **shown})


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


async def _read(gateway: Gateway, call: Call, allowed: Table) -> Buffer:
    fields: dict[str, Any] = dict(call.form) if call.is_form else dict(call.json or {})
    if len(fields) < len(call.form):
        name = next(name for name in fields if sum(sent == name for sent, _ in call.form) > 1)
        raise InvalidRequest(f"`{name}` may be sent once.", param=name)
    for name in fields:
        if name not in allowed:
            takes = " or ".join(f"`{each}`" for each in allowed)
            raise InvalidRequest(f"`{name}` is not a field of this call; it takes {takes}.", param=name)
    file = fields.get("file")
    url = fields.get("url")
    if (file is None) == (url is None):
        wanted = "`file` or `url`, one of them" if "url" in allowed else "`file`"
        raise InvalidRequest(f"Send {wanted}.", param="file")
    if url is not None:
        if not isinstance(url, str):
            raise InvalidRequest("`url` must be a string.", param="url")
        source: Any = checked_urls.check_media_url(url, "url", checked_urls.egress_rules(gateway.settings))
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
    trust = {"anchors": signing.anchors, "own_roots": signing.own_roots, "own_serial": signing.serial}
    try:
        return await read_origin(data, gateway.worker_pool, **trust, for_org=org_id)
    except WorkFailed as error:
        log.warning("file not verified", reason=error.message)
        raise InvalidRequest(f"`file` could not be read: {error.message}", param="file") from None
