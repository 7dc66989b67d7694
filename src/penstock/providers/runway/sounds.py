"""Effects by models of ElevenLabs, Mirelo and ByteDance, as Runway's tasks."""

from dataclasses import replace

from penstock.providers.runway.tasks import PROMPT, SEED, TASK
from penstock.providers.sounds import file_formats
from penstock.providers.spec import Model, Operation, Param, complete_table, passthrough, renamed


def effect(*rows: Param) -> Operation:
    params = complete_table("sound", PROMPT, *rows)
    return replace(TASK, task="sound", send="POST /sound_effect", takes_extras=False, params=params)


ELEVEN = effect(renamed("seconds", to="duration", low=0.5, high=30), passthrough("loop", one_of=(True, False)))
MIRELO = effect(
    renamed("seconds", to="duration", low=1, high=10, default=5),
    renamed("negative_prompt", to="negativePrompt"),
    SEED,
    file_formats("format", {"wav": "wav", "mp3": "mp3", "flac": "flac"}),
)
SCENE = effect(file_formats("outputFormat", {"wav": "wav", "mp3": "mp3", "opus": "ogg_opus"}))
# No price was found, so an operator has to state one; what a task reports as its cost is charged.
MODELS = (
    Model(id="runway/eleven-text-to-sound-v2", upstream="eleven_text_to_sound_v2", op=ELEVEN, prices=()),
    Model(id="runway/mirelo-sfx-2", upstream="mirelo_sfx_2_0", op=MIRELO, prices=()),
    Model(id="runway/seed-audio", upstream="seed_audio", op=SCENE, prices=()),
)
