"""Hand the dashboard to a browser, where nothing but its own scripts may run."""

from penstock import web
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Response

# Pictures may lie in a store of their own; everything else comes from here, and nobody may frame it.
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: https: http:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


# What the page consists of; no other name leads to a file.
PARTS = frozenset(
    {
        "dashboard.css",
        "dashboard.js",
        "gateway.js",
        "keys.js",
        "overview.js",
        "paint.js",
        "recordings.js",
        "webhooks.js",
    }
)


async def page(gateway: Gateway, call: Call) -> Response:
    return _shown("dashboard.html", call)


async def page_part(gateway: Gateway, call: Call) -> Response:
    name = call.path["file"]
    if name not in PARTS:
        raise NotFound("There is nothing at this path.")
    return _shown(name, call)


def _shown(name: str, call: Call) -> Response:
    asset = web.asset(name)
    headers = {**_HEADERS, "etag": asset.etag}
    if call.headers.get("if-none-match") == asset.etag:
        return Response(status=304, headers=headers)
    return Response(body=asset.body, media_type=asset.media_type, headers=headers)
