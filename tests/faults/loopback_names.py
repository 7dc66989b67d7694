"""`penstock` as it is, except that every name is at 127.0.0.1, as a hosts file would have it."""

from penstock.cli import main
from penstock.net.client import HttpClient


async def at_home(self: HttpClient, host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


if __name__ == "__main__":
    HttpClient._resolve = at_home  # type: ignore[method-assign]
    main()
