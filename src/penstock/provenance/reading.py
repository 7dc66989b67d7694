"""Find out what a file says about its origin, and judge it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.event_loop import run_aside
from penstock.imaging.marks import Marks, find_marks
from penstock.imaging.sniff import is_svg, sniff
from penstock.imaging.workers import WorkerPool
from penstock.long_bodies.buffers import Buffer
from penstock.provenance.verdict import EXPLANATIONS, verdict
from penstock.values import OrgId


class FileOrigin(msgspec.Struct, frozen=True):
    """What a file says. `vouched`: its newest statement is signed by this gateway or by somebody trusted; `is_own`: by
    the certificate of this gateway.
    """

    sha256: bytes
    content_type: str | None
    marks: Marks
    credentials: Mapping[str, Any] | None
    vouched: bool
    is_own: bool

    def shown(self, *, is_known: bool) -> dict[str, Any]:
        """The findings in the order in which people read them; `is_known` as for `verdict`."""
        said = verdict(self.credentials, self.marks, is_known=is_known)
        return {
            "verdict": said,
            "explanation": EXPLANATIONS[said],
            "sha256": self.sha256.hex(),
            "content_type": self.content_type,
            "credentials": self.credentials,
            "marks": {"digital_source_type": self.marks.digital_source_type, "aigc": self.marks.aigc},
        }


async def read_origin(
    data: Buffer, pool: WorkerPool, *, anchors: str, own_roots: str = "", own_serial: str = "", for_org: OrgId
) -> FileOrigin:
    """Read a file in a child process, by the certificates that count. Raises WorkFailed if it cannot be read."""
    found = sniff(data)
    content_type = found.content_type if found else "image/svg+xml" if is_svg(data) else None
    read: dict[str, Any] = {"credentials": None, "vouched": False, "is_own": False}
    if content_type is not None:
        trust: dict[str, Any] = {"anchors": anchors, "own_roots": own_roots, "own_serial": own_serial}
        read = await pool.run("provenance.read", for_org=for_org, data=data, content_type=content_type, **trust)
    sha256 = await run_aside(len(data), _digest, data)
    return FileOrigin(sha256, content_type, find_marks(data), read["credentials"], read["vouched"], read["is_own"])


def _digest(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()
