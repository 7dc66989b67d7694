"""Open speech models that several providers serve under one id, with the same voices everywhere: Kokoro and Orpheus."""

from penstock.providers.speech import openai_names, voice_names

KOKORO = "hexgrad/kokoro-82m"
ORPHEUS = "canopylabs/orpheus-3b-0.1-ft"

# A voice of Kokoro begins with a letter for its language and one for its sex.
_LANGUAGES = {
    "a": "American English",
    "b": "British English",
    "e": "Spanish",
    "f": "French",
    "h": "Hindi",
    "i": "Italian",
    "j": "Japanese",
    "p": "Brazilian Portuguese",
    "z": "Mandarin",
}
_KOKORO_NAMES = """
    af_heart af_alloy af_aoede af_bella af_jessica af_kore af_nicole af_nova af_river af_sarah af_sky
    am_adam am_echo am_eric am_fenrir am_liam am_michael am_onyx am_puck am_santa
    bf_alice bf_emma bf_isabella bf_lily bm_daniel bm_fable bm_george bm_lewis
    ef_dora em_alex em_santa ff_siwis hf_alpha hf_beta hm_omega hm_psi if_sara im_nicola
    jf_alpha jf_gongitsune jf_nezumi jf_tebukuro jm_kumo pf_dora pm_alex pm_santa
    zf_xiaobei zf_xiaoni zf_xiaoxiao zf_xiaoyi zm_yunjian zm_yunxi zm_yunxia zm_yunyang
"""
KOKORO_VOICES = {
    name: f"{_LANGUAGES[name[0]]}, {'a woman' if name[1] == 'f' else 'a man'}" for name in _KOKORO_NAMES.split()
}
KOKORO_OPENAI_VOICES = openai_names(
    "af_alloy am_michael bm_george af_bella am_echo bm_fable af_nova am_onyx af_sarah af_sky am_puck af_heart am_fenrir"
)
ORPHEUS_VOICES = voice_names("tara leah jess leo dan mia zac zoe")
ORPHEUS_OPENAI_VOICES = openai_names("tara dan leo jess zac leo leah dan mia zoe zac tara leo")
