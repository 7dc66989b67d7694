"""What an account's voices are, and how one of them sounds."""

from collections.abc import Iterable

from penstock.errors import NotFound, UpstreamError
from penstock.gateway import Gateway
from penstock.long_bodies.buffers import Buffer
from penstock.media.provider_files import DownloadFailed, UnusableFile
from penstock.providers.spec import File
from penstock.providers.voice_lists import ListedVoice
from penstock.schema import Caller
from penstock.sound.sniff import is_opus, sound_format
from penstock.speech.voices import speech_of
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed

_MAX_BYTES = 8 * 2**20
_SECONDS = 20.0
_HEAD_BYTES = 64
_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "aac": "audio/aac", "mp4": "audio/mp4"}


async def account_voices(
    gateway: Gateway, caller: Caller, candidates: Iterable[Candidate]
) -> list[tuple[Candidate, ListedVoice]]:
    """The voices that the accounts of candidates have, as far as the caller may use these accounts. Nobody is asked
    for a caller without a key.
    """
    if not caller.key_id:
        return []
    usable = gateway.vendor_accounts.expand(tuple(candidates), caller.org_id)
    if not gateway.settings.account_voices:
        usable = tuple(each for each in usable if each.account and each.account.org_id)
    return await gateway.account_voices.of(usable)


async def read_sample(
    gateway: Gateway, caller: Caller, candidates: Iterable[Candidate], provider: str, voice_id: str
) -> tuple[Buffer, str]:
    """The sound by which a voice can be heard, and its content type. Raises NotFound for a voice that has none, or that
    the caller may not use, and UpstreamError if it cannot be had.
    """
    of_provider = [each for each in candidates if each.provider.slug == provider]
    for candidate, voice in await account_voices(gateway, caller, of_provider):
        if voice.id == voice_id and voice.sample:
            return await _download(gateway, candidate, voice)
    raise NotFound("There is no such voice, or none that can be heard before it is used.")


async def _download(gateway: Gateway, candidate: Candidate, voice: ListedVoice) -> tuple[Buffer, str]:
    listing = speech_of(candidate.model).account_voices
    file = File(url=voice.sample, private=listing is not None and listing.private_samples)
    name = candidate.provider.name
    try:
        source = gateway.upstream.download_source(candidate, file)
        data = await gateway.media_transfer.provider_files.read(source, max_bytes=_MAX_BYTES, timeout_seconds=_SECONDS)
    except (AttemptFailed, DownloadFailed, UnusableFile):
        raise UpstreamError(f"{name} did not send the sound of the voice.") from None
    head = bytes(data[:_HEAD_BYTES])
    kind = "audio/ogg" if is_opus(head) else _TYPES.get(sound_format(head) or "")
    if kind is None:
        raise UpstreamError(f"{name} sent no sound of the voice.")
    return data, kind
