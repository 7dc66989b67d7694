"""Where copies go: the URL of a bucket, the endpoint that serves it, and the path of each file in it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from penstock.errors import InvalidRequest
from penstock.imaging.formats import extension
from penstock.net.checked_urls import EgressRules, check_endpoint

DEFAULT_PATH = "{date}/{request_id}/{position}.{ext}"
DEFAULT_REGION = "us-east-1"
# Together with the longest values these stay below the 1,024 characters that S3 allows.
MAX_URL_CHARS = 300
MAX_PATH_CHARS = 160
_MAX_VALUE_CHARS = 32  # of the values that others write
_URL = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9.-]{1,61}[A-Za-z0-9])((?:/[A-Za-z0-9._=-]+)*)/?")
_AWS_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]*")
_REGION = re.compile(r"[a-z0-9-]{1,32}")
_NAMES = ("date", "request_id", "position", "ext", "model", "task")
_NEEDED = ("request_id", "position")
_VALUE = re.compile(rf"\{{({'|'.join(_NAMES)}|label\.[a-z][a-z0-9_.-]{{0,31}})\}}")
_LITERAL = re.compile(r"[A-Za-z0-9._=/-]*")
_UNCLEAN = re.compile(r"[^A-Za-z0-9._=-]")


class Place(msgspec.Struct, frozen=True):
    """A folder in a bucket, and the server that has it."""

    bucket: str
    prefix: str  # without slashes at its ends; may be empty
    region: str
    endpoint: str  # such as https://minio.example.com; empty: AWS

    def key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix else path

    def shown_url(self, path: str) -> str:
        """How people and programs of AWS name a file in this folder."""
        return f"s3://{self.bucket}/{self.key(path)}"

    def request_url(self, path: str) -> str:
        """The URL of a file in this folder, for requests."""
        key = quote(self.key(path), safe="/-._~")
        if self.endpoint:
            return f"{self.endpoint}/{self.bucket}/{key}"
        host = f"s3.{self.region}.amazonaws.com{'.cn' if self.region.startswith('cn-') else ''}"
        # A certificate of AWS holds for one more label, so a name with dots comes into the path.
        return f"https://{host}/{self.bucket}/{key}" if "." in self.bucket else f"https://{self.bucket}.{host}/{key}"


def read_place(url: str, region: str, endpoint: str, egress: EgressRules) -> Place:
    """Check where copies are to go. Raises InvalidRequest, which names the field."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARS else None
    if match is None or _goes_up(match[2]) or (not endpoint and not _AWS_BUCKET.fullmatch(match[1])):
        message = "`url` must be `s3://bucket` or `s3://bucket/folder`, of letters, digits and `.`, `_`, `=`, `-`."
        raise InvalidRequest(message, param="url")
    if not _REGION.fullmatch(region):
        raise InvalidRequest("`region` must be the name of a region, such as `eu-central-1`.", param="region")
    checked = check_endpoint(endpoint, "endpoint", egress) if endpoint else ""
    return Place(match[1], match[2].strip("/"), region, checked)


def check_path(path: str, param: str) -> str:
    """Return a template of paths; raise InvalidRequest unless it gives each file a path of its own below the folder."""
    literal = _VALUE.sub("", path)
    found = set(_VALUE.findall(path))
    if len(path) > MAX_PATH_CHARS or not _LITERAL.fullmatch(literal) or path.startswith("/") or _goes_up(path):
        names = ", ".join(f"`{{{name}}}`" for name in _NAMES)
        message = (
            f"`{param}` must have at most {MAX_PATH_CHARS} characters: letters, digits, `.`, `_`, `=`, `-` and `/`, "
            f"and the names {names} and `{{label.NAME}}`."
        )
        raise InvalidRequest(message, param=param)
    for name in _NEEDED:
        if name not in found:
            message = f"`{param}` must contain `{{{name}}}`: each file has a path of its own."
            raise InvalidRequest(message, param=param)
    return path


def _goes_up(path: str) -> bool:
    return any(part in ("", ".", "..") for part in path.strip("/").split("/")) and bool(path)


def file_path(
    template: str,
    *,
    request_id: str,
    position: int,
    content_type: str,
    created_at_ms: int,
    model: str,
    task: str,
    labels: Mapping[str, str],
) -> str:
    """The path of a file: always the same for the same output."""
    values = {
        "date": f"{datetime.fromtimestamp(created_at_ms / 1000, UTC):%Y-%m-%d}",
        "request_id": request_id,
        "position": str(position),
        "ext": extension(content_type),
        "model": model[:_MAX_VALUE_CHARS],
        "task": task,
        **{f"label.{name}": value[:_MAX_VALUE_CHARS] for name, value in labels.items()},
    }
    return _VALUE.sub(lambda match: _clean(values.get(match[1], "")), template)


def _clean(value: str) -> str:
    """A value as a part of a path: it cannot leave its folder, and is never empty."""
    cleaned = _UNCLEAN.sub("_", value)
    return cleaned if cleaned.strip(".") else "none"
