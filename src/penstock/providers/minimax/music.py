"""MiniMax music: songs with words, or without a voice; the reply has the address of the file."""

from typing import Any

from penstock.providers.minimax.codes import code_kind
from penstock.providers.sounds import MUSIC, file_formats
from penstock.providers.spec import File, Model, Operation, Reply, Result, complete_table, fixed, passthrough, renamed


def read_song(reply: Reply) -> Result:
    """A failure has status 200, and a code that is not 0."""
    song = reply.json
    status = song.get("base_resp") or {}
    if status.get("status_code"):
        message = status.get("status_msg")
        return Result(status="failed", failure_kind=code_kind(status["status_code"]), message=message)
    return Result(files=(File(url=song["data"]["audio"]),), upstream_id=song.get("trace_id"))


def without_voice(fields: dict[str, Any]) -> dict[str, Any]:
    """A model sings the words that it is sent; without any, it is told not to sing."""
    return fields if fields.get("lyrics") else {"is_instrumental": True, **fields}


SONG = Operation(
    task="sound",
    send="POST /v1/music_generation",
    read=read_song,
    takes_extras=False,
    settings=MUSIC,
    adjust_body=without_voice,
    params=complete_table(
        "sound",
        passthrough("prompt", max_length=2000),
        passthrough("lyrics", max_length=3500),
        renamed("instrumental", to="is_instrumental"),
        fixed("stream", False),
        fixed("output_format", "url"),
        fixed("audio_setting.sample_rate", 44100),
        fixed("audio_setting.bitrate", 256000),
        file_formats("audio_setting.format", {"mp3": "mp3", "wav": "wav"}),
    ),
)
# No price of MiniMax's own was found, so an operator has to state one.
MODELS = tuple(Model(id=f"minimax/{name}", upstream=name, op=SONG, prices=()) for name in ("music-2.6", "music-3.0"))
