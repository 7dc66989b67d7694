"""Keep what a provider is sent and replies during one call, without secrets, as a recording for the project's tests."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus, urlsplit

import msgspec

from penstock.long_bodies.base64_pieces import Base64Text
from penstock.providers.spec import File, HttpRequest, Reply, Upload
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream

_PLACEHOLDER = b"image data"  # stands for every image and video
_ENCODED = base64.b64encode(_PLACEHOLDER).decode()
_KEPT_HEADERS = ("content-type", "retry-after", "x-request-id")
_MEDIA = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}")  # base64 of a file
_URL = re.compile(r"https?://[^\s\"'<>]+")
_PRIVATE_NAMES = re.compile(
    r"(?:^|_)(?:user|account|org|organization|email|team|owner|workspace|customer)(?:_|$)", re.IGNORECASE
)

Clean = Callable[[Any], Any]


class Exchanges:
    """The exchanges of one call, in order; `keep` is called with each."""

    def __init__(self) -> None:
        self._kept: list[tuple[Candidate, HttpRequest, Reply]] = []

    def __bool__(self) -> bool:
        return bool(self._kept)

    def keep(self, candidate: Candidate, request: HttpRequest, reply: Reply) -> None:
        self._kept.append((candidate, request, reply))

    def recording(
        self, fields: Mapping[str, Any], upstream: Upstream, published_url: str, secrets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The call as a recording: the caller's fields, the exchanges without secrets, and the result.

        `published_url` is the provider's own base URL; the call may have gone to another one. `secrets` are texts that
        may be secret beside the provider's credential.
        """
        candidate = self._kept[-1][0]
        clean = self._cleaner(candidate, published_url, secrets)
        exchanges = [{"sent": _sent(request, clean), "reply": _reply(reply, clean)} for _, request, reply in self._kept]
        op = candidate.model.op
        read = op.read if len(exchanges) == 1 else op.read_poll or op.read
        result = read(_as_reply(exchanges[-1]["reply"]))
        return {
            "model": candidate.model.id,
            "upstream": candidate.model.upstream,
            "request": {name: _input(name, value) for name, value in fields.items() if name != "model"},
            "exchanges": exchanges,
            "result": {"files": [clean(_file(upstream, candidate, file)) for file in result.files]},
        }

    def _cleaner(self, candidate: Candidate, published_url: str, secrets: Sequence[str]) -> Clean:
        """A function that replaces secrets and media, in the same way wherever they occur."""
        requested = {request.url for _, request, _ in self._kept}
        hidden = [candidate.key, *secrets]
        hidden += [quote_plus(secret) for secret in hidden]  # as they are in a URL

        def clean_text(text: str) -> str:
            for secret in filter(None, hidden):
                text = text.replace(secret, "the-credential")
            text = _URL.sub(lambda url: url[0] if url[0] in requested else _without_query(url[0]), text)
            return _MEDIA.sub(_ENCODED, text.replace(candidate.provider.base_url, published_url))

        def clean(value: Any) -> Any:
            if isinstance(value, str):
                return clean_text(value)
            if isinstance(value, Base64Text):
                return _ENCODED
            if isinstance(value, Mapping):
                return {name: "removed" if _is_private(name, item) else clean(item) for name, item in value.items()}
            return [clean(item) for item in value] if isinstance(value, list) else value

        return clean


def _is_private(name: str, value: Any) -> bool:
    return isinstance(value, str) and _PRIVATE_NAMES.search(name) is not None


def _without_query(url: str) -> str:
    """A URL without its query, where signatures are."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _input(name: str, value: Any) -> Any:
    """A field of the call; input images are as large as those of the calls that check providers."""
    if name not in ("image", "input_reference"):
        return value
    return {"data": _PLACEHOLDER.decode(), "content_type": "image/png", "width": 512, "height": 512}


def _sent(request: HttpRequest, clean: Clean) -> dict[str, Any]:
    sent: dict[str, Any] = {"method": request.method, "url": clean(request.url)}
    if request.form:
        return {**sent, "form": [[name, _part(value, clean)] for name, value in request.form]}
    return {**sent, "body": clean(msgspec.json.decode(request.whole_body))} if request.body else sent


def _part(value: str | Upload, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    return {"filename": value.filename, "content_type": value.content_type, "data": _PLACEHOLDER.decode()}


def _reply(reply: Reply, clean: Clean) -> dict[str, Any]:
    headers = {name: clean(value) for name, value in reply.headers.items() if name in _KEPT_HEADERS}
    kept: dict[str, Any] = {} if reply.status == 200 else {"status": reply.status}
    kept |= {"headers": headers} if headers else {}
    try:
        return {**kept, "json": clean(reply.json)}
    except msgspec.DecodeError:
        return {**kept, "base64": _ENCODED}


def _as_reply(kept: Mapping[str, Any]) -> Reply:
    body = msgspec.json.encode(kept["json"]) if "json" in kept else base64.b64decode(kept["base64"])
    return Reply(kept.get("status", 200), kept.get("headers", {}), body)


def _file(upstream: Upstream, candidate: Candidate, file: File) -> dict[str, Any]:
    """A file of the result with the fields that it has."""
    has: dict[str, Any] = {"content_type": file.content_type, "revised_prompt": file.revised_prompt}
    if isinstance(file.data, bytes):
        has["data"] = {"base64": base64.b64encode(file.data).decode()}
    elif file.data is not None:
        has["data"] = file.data
    else:
        source = upstream.download_source(candidate, file)
        has |= {"url": source.url, "private": bool(source.headers) or None}
    return {name: value for name, value in has.items() if value is not None}
