"""Open the storage that the settings name."""

from collections.abc import Mapping
from pathlib import Path

from penstock.media.storage import Folder, Storage
from penstock.package_extras import check_extra


def open_storage(media: str, options: Mapping[str, str], data: Path) -> Storage:
    """Open the object store at the URL `media`; without one, the folder `media` in the data folder."""
    if not media:
        return Folder(data / "media")
    check_extra("s3", "an object store for media")
    from penstock.media.bucket import Bucket  # imported here because its library is an extra

    return Bucket(media, options)
