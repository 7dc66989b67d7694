"""Hold the bytes of a sound while it is made, and give the header of a WAV file its true sizes at the end."""

import hashlib
import struct
from pathlib import Path

from penstock.event_loop import in_file_thread
from penstock.media.download import Download
from penstock.sound import wave
from penstock.sound.formats import SAMPLE_BYTES

_HEAD_BYTES = 64 * 1024


class SoundFile(Download):
    """Takes the bytes of a sound as they arrive. Leaving the context deletes the temporary file, if there is one."""

    async def finish_sound(self, content_type: str) -> tuple[bytes, bytes | Path]:
        """Return the SHA-256 of the complete file, and its bytes or the path of the temporary file that has them."""
        if content_type == "audio/wav":
            await self._set_wave_sizes()
        if self._file is None or self._path is None:
            data = b"".join(self._pieces)
            return hashlib.sha256(data).digest(), data
        self._file.close()
        return await in_file_thread(_digest, self._path), self._path

    async def raw_seconds(self, content_type: str) -> float | None:
        """How long the complete sound is, if its samples are plain; None for any other."""
        if content_type.startswith("audio/pcm"):
            rate = int(content_type.partition("rate=")[2].partition(";")[0])
            return self._size_bytes / SAMPLE_BYTES / rate
        if content_type != "audio/wav":
            return None
        found = wave.read_header(await self.head(_HEAD_BYTES))
        if found is None or not found.is_plain:
            return None
        return (self._size_bytes - found.data_start) / SAMPLE_BYTES / found.rate

    async def _set_wave_sizes(self) -> None:
        """A stream's header says that nobody knows how long it is; that of a file says it. What may be true stays."""
        if self._file is not None:
            self._file.flush()
        found = wave.read_header(await self.head(_HEAD_BYTES))
        if found is None or self._size_bytes >= wave.UNKNOWN_SIZE or 0 < found.data_bytes <= self._size_bytes:
            return
        self._overwrite(4, struct.pack("<I", self._size_bytes - 8))
        self._overwrite(found.data_start - 4, struct.pack("<I", self._size_bytes - found.data_start))

    def _overwrite(self, at: int, data: bytes) -> None:
        if self._file is None:
            whole = bytearray(b"".join(self._pieces))
            whole[at : at + len(data)] = data
            self._pieces[:] = [bytes(whole)]
        else:
            self._file.seek(at)
            self._file.write(data)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
