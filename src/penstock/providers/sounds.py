"""How providers are asked for effects and music, and how their replies are read."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.exchange import File, Reply, Result
from penstock.providers.spec import Operation, Param, complete_table, converted, passthrough, renamed

MUSIC: Mapping[str, Any] = {"modes": ("text-to-music",)}  # the setting of operations that make music


def read_sound(reply: Reply) -> Result:
    """Read a reply whose body is the sound itself. Raises ValueError for one that is something else."""
    content_type = reply.headers.get("content-type", "")
    if not reply.body or content_type.startswith(("application/json", "text/")):
        raise ValueError("no sound")
    return Result(files=(File(data=reply.body),), upstream_id=reply.headers.get("x-request-id"))


def file_formats(to: str, fields: Mapping[str, str]) -> Param:
    """The row for `output_format` of a model that makes several formats: what it is sent for each. The others are made
    of the first one.
    """
    first = next(iter(fields.values()))
    return converted("output_format", to, lambda wanted: fields.get(wanted, first), default=next(iter(fields)))


# The endpoint of ElevenLabs, which LocalAI has as well.
GENERATE = Operation(
    task="sound",
    send="POST /sound-generation",
    read=read_sound,
    model_field="model_id",
    params=complete_table(
        "sound",
        renamed("prompt", to="text", required=True),
        renamed("seconds", to="duration_seconds", low=0.5, high=600),
        passthrough("loop"),
    ),
)
