"""Serve the pages of the dashboard."""

from penstock import web
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response

# A browser may run only our own scripts and may not show the pages in a frame. Images and videos may come from an
# object store; what the user chooses from the disk is shown as a blob.
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob: https: http:; media-src 'self' data: blob: https: http:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "vary": "accept-encoding",
}
_PAGE = "index.html"


async def page(gateway: Gateway, call: Call) -> Response:
    return _file_response(_PAGE, call)


async def page_part(gateway: Gateway, call: Call) -> Response:
    name = call.path["file"]
    if name == _PAGE or name not in web.asset_names():
        raise NotFound(f"There is no file {name[:64]} on the pages.")
    return _file_response(name, call)


def _file_response(name: str, call: Call) -> Response:
    asset = web.asset(name)
    headers = {**_HEADERS, "etag": asset.etag}
    if call.headers.get("if-none-match") == asset.etag:
        return Response(status=304, headers=headers)
    if asset.gzipped is not None and "gzip" in call.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(body=asset.gzipped, media_type=asset.media_type, headers=headers)
    return Response(body=asset.body, media_type=asset.media_type, headers=headers)
