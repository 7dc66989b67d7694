"""Let pages of other origins call the API from a browser, where the operator lists them."""

from collections.abc import Mapping, Sequence

from penstock.schema import Response

_ANY = "*"
_METHODS = "GET, POST, DELETE, PATCH, OPTIONS"
_SECONDS = "600"
# A browser shows a page only the headers that are named here.
_EXPOSED = ", ".join(
    """x-request-id x-service-request-id retry-after x-should-retry openai-poll-after-ms x-ratelimit-limit-requests
    x-ratelimit-remaining-requests x-ratelimit-reset-requests x-service-replay-status x-service-replay-recording
    idempotent-replayed idempotency-mismatch x-service-guards x-service-overhead-ms x-service-executed-model
    x-service-content-credentials content-range accept-ranges""".split()
)


class Cors:
    """The responses to browsers. Keys are sent in a header, never as cookies, so credentials are not allowed."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = {origin.lower() for origin in origins}

    def headers(self, request_headers: Mapping[str, str]) -> dict[str, str]:
        """The headers with which a response to this request may be read by its page; none for other origins."""
        origin = request_headers.get("origin")
        if _ANY in self._origins:
            return {"access-control-allow-origin": _ANY, "access-control-expose-headers": _EXPOSED}
        if origin is None or origin.lower() not in self._origins:
            return {"vary": "origin"}
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": _EXPOSED,
            "vary": "origin",
        }

    def preflight(self, method: str, request_headers: Mapping[str, str]) -> Response | None:
        """The response to a browser that asks whether it may send a request; None if this is no such question.

        A browser asks without the key. The response says nothing about the path, and the request itself needs a key.
        """
        if method != "OPTIONS" or "access-control-request-method" not in request_headers:
            return None
        allowed = self.headers(request_headers)
        if "access-control-allow-origin" not in allowed:
            return Response(status=204)
        asked = request_headers.get("access-control-request-headers", "authorization, content-type")
        return Response(
            status=204,
            headers={
                "access-control-allow-methods": _METHODS,
                "access-control-allow-headers": asked,
                "access-control-max-age": _SECONDS,
            },
        )
