"""Measure the sounds of a chat call, because their length is their price, and convert those that models cannot read."""

import binascii

import msgspec

from penstock.chat.messages import ChatSound
from penstock.chat.request import ChatRequest, with_sounds
from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.imaging.workers import WorkFailed
from penstock.package_extras import has_extra, how_to_install
from penstock.providers.spec import Model
from penstock.sound.sniff import HEAD_BYTES, sound_format
from penstock.values import OrgId

_EXTRA = "media"
_MAX_SOUNDS = 16
_PASSED_ON = ("wav", "mp3")  # what OpenAI's API takes; others become the first


async def measured_sounds(gateway: Gateway, chat: ChatRequest, org_id: OrgId) -> ChatRequest:
    """Return the call with the length of its sounds, as their samples say it, each as WAV or MP3. Raises InvalidRequest
    for what is not a sound.
    """
    if not has_extra(_EXTRA):
        message = f"To read sound, the gateway needs an extra: {how_to_install(_EXTRA)}."
        raise InvalidRequest(message, param=chat.sounds[0].param)
    if len(chat.sounds) > _MAX_SOUNDS:
        raise InvalidRequest(f"`messages` may have at most {_MAX_SOUNDS} sounds.", param="messages")
    return with_sounds(chat, [await _measured(gateway, sound, org_id) for sound in chat.sounds])


async def _measured(gateway: Gateway, sound: ChatSound, org_id: OrgId) -> ChatSound:
    try:
        data = await run_aside(len(sound.data), lambda: binascii.a2b_base64(sound.data, strict_mode=True))
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"`{sound.param}` must be base64.", param=sound.param) from None
    max_bytes = gateway.settings.input_audio_bytes
    if len(data) > max_bytes:
        raise PayloadTooLarge(f"`{sound.param}` may have {max_bytes} bytes at most.", param=sound.param)
    found = sound_format(data[:HEAD_BYTES])
    try:
        if found in _PASSED_ON:
            made = await gateway.worker_pool.run("sound.measure", for_org=org_id, data=data)
            return msgspec.structs.replace(sound, format=found, seconds=made["seconds"])
        target = _PASSED_ON[0]
        made = await gateway.worker_pool.run("sound.remake", for_org=org_id, data=data, target=target)
    except WorkFailed as error:
        reason = error.message if error.kind == "refused" else "It could not be read."
        raise InvalidRequest(f"`{sound.param}` is not a usable sound: {reason}", param=sound.param) from None
    encoded = await run_aside(len(made["data"]), lambda: binascii.b2a_base64(made["data"], newline=False).decode())
    return msgspec.structs.replace(sound, data=encoded, format=target, seconds=made["seconds"])


def check_sound_prices(chat: ChatRequest, model: Model) -> None:
    """Raise InvalidRequest if the call has sounds, or asks for speech, and the model has no price for their tokens.
    What costs nothing costs nothing as a sound, too.
    """
    if chat.sounds and not _has_price(model, "audio_input"):
        first = chat.sounds[0]
        param = f"messages[{first.message}].content[{first.part}].type"
        raise InvalidRequest(f"{model.id} takes no `input_audio`: no price of its audio tokens is known.", param=param)
    if chat.speaks and not _has_price(model, "audio_output"):
        message = f"{model.id} does not speak in chats: no price of its audio tokens is known."
        raise InvalidRequest(message, param="modalities")


def _has_price(model: Model, name: str) -> bool:
    return all(name in price.other_usd or price.usd == price.input_usd == "0" for price in model.prices)
