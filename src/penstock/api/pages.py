"""Hand the dashboard to a browser, where nothing but its own script may run."""

from penstock import web
from penstock.gateway import Gateway
from penstock.schema import Answer, Call

# Pictures may lie in a store of their own; everything else comes from here, and nobody may frame it.
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: https: http:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


async def page(gateway: Gateway, call: Call) -> Answer:
    return _shown("dashboard.html", call)


async def style(gateway: Gateway, call: Call) -> Answer:
    return _shown("dashboard.css", call)


async def script(gateway: Gateway, call: Call) -> Answer:
    return _shown("dashboard.js", call)


def _shown(name: str, call: Call) -> Answer:
    asset = web.asset(name)
    headers = {**_HEADERS, "etag": asset.etag}
    if call.headers.get("if-none-match") == asset.etag:
        return Answer(status=304, headers=headers)
    return Answer(body=asset.body, media_type=asset.media_type, headers=headers)
