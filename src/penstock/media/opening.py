"""Open the storage that the settings name."""

from collections.abc import Mapping
from pathlib import Path

from penstock.media.storage import Folder, Storage
from penstock.package_extras import check_extra


def open_storage(media: str, options: Mapping[str, str], data: Path, *, url_endpoint: str | None = None) -> Storage:
    """Open the object store at the URL `media`; without one, the folder `media` in the data folder.

    With `url_endpoint` the object store serves files itself, at URLs that it signs: at that endpoint, or if it is empty
    at the one in the options.
    """
    if not media:
        return Folder(data / "media")
    check_extra("s3", "an object store for media")
    from penstock.media.bucket import Bucket  # imported here because its library is an extra

    return Bucket(media, options, url_endpoint)
