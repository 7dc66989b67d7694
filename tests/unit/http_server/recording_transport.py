"""A transport that sends nothing."""

import asyncio
from typing import Any


class RecordingTransport(asyncio.Transport):
    """A transport that records which bytes were written together."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[bytes] = []

    def write(self, data: Any) -> None:
        self.packets.append(data)

    def writelines(self, parts: Any) -> None:
        assert all(parts), "asyncio never gets rid of an empty part"
        self.packets.append(b"".join(parts))

    def close(self) -> None:
        self.packets.append(b"END")

    def is_closing(self) -> bool:
        return b"END" in self.packets
