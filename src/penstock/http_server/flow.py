"""Pause reading and writing on a connection whose other side is slower."""

import asyncio


class Flow:
    """What is paused on a connection: reading by us, or writing by the transport, whose buffer is full."""

    __slots__ = ("_may_write", "_transport", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Wait until the transport takes more."""
        await self._may_write.wait()

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._may_write.clear()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._may_write.set()
