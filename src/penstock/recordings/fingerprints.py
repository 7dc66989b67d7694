"""Compute what a call is recognised by when a recording of it is looked for."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from penstock.fields import TABLES, UploadedFile
from penstock.long_bodies.base64_pieces import STEP, Base64Text, data_uri_start, is_data_uri, tolerant_pieces
from penstock.schema import Fingerprint, Request

# Fields that the match `standard` ignores: they do not change the output, except for the prompt, whose wording a test
# may change.
IGNORED_FIELDS = frozenset(
    "prompt user metadata webhook_url idempotency_key session_id labels media_retention deliver_to "
    "deliver_required".split()
)
# Of speech, the text is the prompt; formats and speeds are made of one recording.
_SPEECH_IGNORED = frozenset({"input", "response_format", "speed", "stream_format", "sample_rate"})
# Every form of a transcript is made of one recording.
_TRANSCRIPT_IGNORED = frozenset({"response_format", "timestamp_granularities", "stream"})
_IGNORED = {
    "speech": IGNORED_FIELDS | _SPEECH_IGNORED,
    "transcription": IGNORED_FIELDS | _TRANSCRIPT_IGNORED,
}


def make_fingerprint(
    request: Request,
    model: str,
    inputs: Sequence[tuple[str, UploadedFile | str | Base64Text]],
    strict: bytes,
    match: str = "standard",
) -> Fingerprint:
    """What a call is compared by. A field at its default counts the same as a field left out.

    `model` is the id under which it is listed, `inputs` are roles and files or URLs, `strict` is the digest of the
    body.
    """
    kind = request.task
    ignored = _IGNORED.get(kind, IGNORED_FIELDS)
    defaults = {row.name: row.default for row in TABLES[kind].values() if row.default is not None and not row.alias_of}
    values = {**defaults, **request.values, **request.extras}
    digests = [[role, input_digest(source)] for role, source in inputs]
    compared = {name: value for name, value in values.items() if name not in ignored}
    standard = msgspec.json.encode([kind, model, dict(sorted(compared.items())), digests], order="deterministic")
    text = "input" if kind == "speech" else "prompt"
    prompt = {text: values.get(text)}
    exact = msgspec.json.encode([kind, model, {**compared, **prompt}, digests], order="deterministic")
    everything = {**values, "model": model, "image": digests}
    return Fingerprint(
        kind,
        model,
        everything,
        hashlib.sha256(standard).digest(),
        strict,
        compared_by(match),
        hashlib.sha256(exact).digest(),
    )


def compared_by(match: str) -> Literal["standard", "strict", "exact"]:
    """The digest by which two calls are alike."""
    if match == "strict":
        return "strict"
    return "exact" if match == "exact" else "standard"


def input_digest(source: UploadedFile | str | Base64Text) -> str:
    """The digest of a file's bytes, whether it was uploaded or is a data URI, or of a URL: a replay does not fetch the
    file behind it. In pieces, because a thread lets no other one run while it decodes or copies one.
    """
    if isinstance(source, UploadedFile):
        return hashlib.sha256(source.data).hexdigest()
    digest = hashlib.sha256()
    if isinstance(source, Base64Text):
        with suppress(ValueError):
            for _ in source.decode():
                pass
            return hashlib.sha256(source.file).hexdigest()
        source = source.head  # it will be refused
    if is_data_uri(source):
        nothing = digest.digest()
        with suppress(ValueError):  # it will be refused
            for piece in tolerant_pieces(source, data_uri_start(source)):
                digest.update(piece)
            if digest.digest() != nothing:
                return digest.hexdigest()
        digest = hashlib.sha256()
    for at in range(0, len(source), STEP):
        digest.update(source[at : at + STEP].encode())
    return digest.hexdigest()
