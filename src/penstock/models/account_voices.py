"""The voices that accounts at vendors have: asked of the vendor, and remembered for an hour."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
import structlog

from penstock.cache import Cache
from penstock.clock import Clock
from penstock.providers.speech import Speech
from penstock.providers.voice_lists import ListedVoice, VoiceList, VoicePage
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed

log = structlog.get_logger()
_FRESH_SECONDS = 3600.0
_FAILED_SECONDS = 60.0  # how long a vendor that did not answer is not asked again
_ASK_SECONDS = 5.0  # for a page
_WAIT_SECONDS = 12.0  # for all pages
_PAGES_MAX = 10
_ACCOUNTS_MAX = 1024
_ID_LENGTH_MAX = 256
_TEXT_LENGTH_MAX = 300
_LANGUAGES_MAX = 100
_GENDERS = {"masculine": "male", "feminine": "female", "gender_neutral": "neutral"}

Key = tuple[str, str, int]  # provider, account, and the version of the account, whose credential may be replaced


class AccountVoices:
    """The voices of accounts. Each account has its own list, so an organization sees only those that it may use."""

    def __init__(self, upstream: Upstream, clock: Clock) -> None:
        self._upstream = upstream
        self._lists: Cache[Key, tuple[ListedVoice, ...]] = Cache(clock.monotonic, _ACCOUNTS_MAX)
        self._locks: dict[Key, asyncio.Lock] = {}

    async def of(self, candidates: Iterable[Candidate]) -> list[tuple[Candidate, ListedVoice]]:
        """The voices of the candidates' accounts, each with the candidate. Those of a vendor that does not answer are
        missing.
        """
        asked = [(candidate, _voice_list(candidate)) for candidate in candidates]
        by_key = {_key(candidate): (candidate, listing) for candidate, listing in asked if listing}
        found = dict(zip(by_key, await asyncio.gather(*(self._read(*each) for each in by_key.values())), strict=True))
        return [
            (candidate, voice)
            for candidate, listing in asked
            if listing
            for voice in found[_key(candidate)]
            if voice.models is None or candidate.model.upstream in voice.models
        ]

    async def _read(self, candidate: Candidate, listing: VoiceList) -> tuple[ListedVoice, ...]:
        """The voices of one account. Those who ask at the same time wait for one answer."""
        key = _key(candidate)
        known = self._lists.get(key)
        if known is not None:
            return known
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._lists.get(key)
            if known is None:
                known, seconds = await self._ask(candidate, listing)
                self._lists.put(key, known, seconds)
            self._locks.pop(key, None)
        return known

    async def _ask(self, candidate: Candidate, listing: VoiceList) -> tuple[tuple[ListedVoice, ...], float]:
        """Ask the vendor; return what it lists, and for how many seconds that is true."""
        voices: dict[str, ListedVoice] = {}
        following: Mapping[str, Any] = {}
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                for _ in range(_PAGES_MAX):
                    page = await self._ask_page(candidate, listing, following)
                    voices |= {voice.id: voice for voice in page.voices}
                    following = page.following
                    if not following:
                        break
        except (AttemptFailed, TimeoutError) as problem:
            reason = problem.failure.message if isinstance(problem, AttemptFailed) else "it took too long"
            log.info("voices not listed", provider=candidate.provider.slug, reason=reason)
            return tuple(voices.values()), _FAILED_SECONDS
        return tuple(voices.values()), _FRESH_SECONDS

    async def _ask_page(self, candidate: Candidate, listing: VoiceList, following: Mapping[str, Any]) -> VoicePage:
        template = listing.send
        if following:
            template += ("&" if "?" in template else "?") + urlencode(following)

        def read(fields: Any) -> VoicePage:
            page = listing.read(fields)
            return VoicePage(tuple(_checked(voice) for voice in page.voices), page.following)

        return await self._upstream.read_list(candidate, template, read, listing.body, seconds=_ASK_SECONDS)


def _voice_list(candidate: Candidate) -> VoiceList | None:
    speech: Speech | None = candidate.model.op.speech
    return speech.account_voices if speech else None


def _key(candidate: Candidate) -> Key:
    account = candidate.account
    return candidate.provider.slug, candidate.account_id, account.version if account else 0


def _checked(voice: ListedVoice) -> ListedVoice:
    """The voice with texts of a sensible length. Raises TypeError or ValueError if it cannot be right."""
    texts = (voice.id, voice.name, voice.description, voice.gender, voice.sample, *voice.languages)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a voice is described in texts")
    if not (0 < len(voice.id) <= _ID_LENGTH_MAX and voice.id.isprintable()):
        raise ValueError("a voice has an id that can be written")
    languages = [language for language in dict.fromkeys(voice.languages) if 0 < len(language) <= _LANGUAGES_MAX]
    return msgspec.structs.replace(
        voice,
        name=voice.name[:_TEXT_LENGTH_MAX],
        description=voice.description[:_TEXT_LENGTH_MAX],
        languages=tuple(languages[:_LANGUAGES_MAX]),
        gender=_GENDERS.get(voice.gender, voice.gender[:_TEXT_LENGTH_MAX]),
    )
