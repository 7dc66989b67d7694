"""Serve the pages of the dashboard and of the documentation."""

import asyncio

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
_VERIFY_PAGE = "verify.html"
_VOTE_PAGE = "vote.html"


async def page(gateway: Gateway, call: Call) -> Response:
    return _file_response(web.asset(_PAGE), call)


async def verify_page(gateway: Gateway, call: Call) -> Response:
    return _file_response(web.asset(_VERIFY_PAGE), call)


async def vote_page(gateway: Gateway, call: Call) -> Response:
    return _file_response(web.asset(_VOTE_PAGE), call)


async def page_part(gateway: Gateway, call: Call) -> Response:
    name = call.path["file"]
    if name in (_PAGE, _VERIFY_PAGE) or name not in web.asset_names():
        raise NotFound(f"There is no file {name[:64]} on the pages.")
    return _file_response(web.asset(name), call)


async def manual_home(gateway: Gateway, call: Call) -> Response:
    return await _manual_response("", call)


async def manual_page(gateway: Gateway, call: Call) -> Response:
    return await _manual_response(call.path["page"].rstrip("/"), call)


async def llms_txt(gateway: Gateway, call: Call) -> Response:
    return _file_response(await asyncio.to_thread(_llms_txt, call.base_url), call)


async def llms_full_txt(gateway: Gateway, call: Call) -> Response:
    return await _manual_response("llms-full.txt", call)


async def _manual_response(name: str, call: Call) -> Response:
    """Respond with a page, rendered in a thread: the longest takes a third of a second, once in a process.

    Where there is none, a browser gets a page that says so, and a program the error envelope.
    """
    asset = await asyncio.to_thread(_manual_asset, name)
    if asset is None and "text/html" in call.headers.get("accept", ""):
        missing = await asyncio.to_thread(_missing_page)
        headers = {**_HEADERS, "vary": "accept"}
        return Response(status=404, body=missing.body, media_type=missing.media_type, headers=headers)
    if asset is None:
        raise NotFound(f"There is no page {name[:64]} in the documentation; /docs lists all pages.")
    return _file_response(asset, call)


# The renderer is imported when it is first needed: that takes longer than everything else that a start imports.


def _manual_asset(name: str) -> web.Asset | None:
    from penstock.web import manual_pages

    return manual_pages.manual_asset(name)


def _missing_page() -> web.Asset:
    from penstock.web import manual_pages

    return manual_pages.missing_page()


def _llms_txt(base_url: str) -> web.Asset:
    from penstock.web import manual_pages

    return manual_pages.llms_txt(base_url)


def _file_response(asset: web.Asset, call: Call) -> Response:
    headers = {**_HEADERS, "etag": asset.etag}
    if call.headers.get("if-none-match") == asset.etag:
        return Response(status=304, headers=headers)
    if asset.gzipped is not None and "gzip" in call.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(body=asset.gzipped, media_type=asset.media_type, headers=headers)
    return Response(body=asset.body, media_type=asset.media_type, headers=headers)
