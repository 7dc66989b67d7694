"""The ways in which sending an HTTP request fails, sorted by whether the server may have received it."""

# All that the caller who supplied a URL learns. If a blocked IP address, a failed lookup and a timeout had different
# messages, callers could use the gateway to scan its network.
UNREACHABLE = "the URL could not be reached"


class NotSent(Exception):
    """The server received nothing, so the request can be sent again without paying twice."""

    def __init__(self, reason: str, *, local: bool = False) -> None:
        super().__init__(reason)
        self.local = local  # this machine lacks a resource; says nothing about the server


class LookupBusy(NotSent):
    """The name was not looked up, because other lookups of the same organization, or of many, took too long."""

    def __init__(self) -> None:
        super().__init__("too many host names are being looked up", local=True)


class UrlBlocked(NotSent):
    """The egress rules forbid the URL, or one of the IP addresses of its host."""

    def __init__(self) -> None:
        super().__init__(UNREACHABLE)


class MaybeSent(Exception):
    """The server may have received the request and acted on it, but no complete response was read."""

    def __init__(self, reason: str, *, timeout: bool = False) -> None:
        super().__init__(reason)
        self.timeout = timeout


class ResponseTooLarge(MaybeSent):
    """The response body is longer than the limit."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the response has more than {max_bytes} bytes")
