"""Write URLs as they are sent: those that operators and providers give may have odd forms."""

import re
from base64 import b64encode
from urllib.parse import quote, unquote_to_bytes

import idna

_URL = re.compile(
    r"(https?)://(?:([^\s/?#@\\]*)@)?([^\s/?#@\\:\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?([/?][^#\0\r\n\t]*)?(?:#.*)?",
    re.IGNORECASE,
)
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


def plain_url(url: str) -> tuple[str, str] | None:
    """Return a URL with an ASCII host in lower case, an ASCII path and no fragment, and the value of the
    `authorization` header that its user and password mean, if it has any. None for what is no URL of HTTP.
    """
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, credentials, host, port, path = match.groups("")
    host = host.lower()
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode()
        except idna.IDNAError:
            return None
    path = quote(path if path.startswith("/") else f"/{path}", safe=_PRINTABLE)
    authorization = f"Basic {b64encode(unquote_to_bytes(credentials)).decode()}" if credentials else ""
    return f"{scheme.lower()}://{host}{port}{path}", authorization
