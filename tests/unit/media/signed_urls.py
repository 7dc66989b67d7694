"""Make an image, and open files by their signed URLs."""

from urllib.parse import parse_qs, urlsplit

from penstock.schema import Response
from tests.gateway import RunningGateway


async def create_image(running: RunningGateway) -> str:
    """Generate an image and return its URL."""
    url: str = (await running.image())["data"][0]["url"]
    return url


def split_url(url: str) -> tuple[str, dict[str, str]]:
    found = urlsplit(url)
    return found.path.removeprefix("/m/"), {name: values[0] for name, values in parse_qs(found.query).items()}


async def open_url(running: RunningGateway, url: str, range_header: str | None = None) -> Response:
    media_id, query = split_url(url)
    return await running.gateway.media.open(media_id, query, range_header)


async def read_body(response: Response) -> bytes:
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])
