"""Guess from the name of an extra field whether it redirects the call, changes its price or has input files.

Callers may send fields that no table here knows: providers have hundreds of them, and most do no harm. Nothing says
which ones do, so this guesses by name. It guesses too often rather than too seldom: if a harmless field is refused, the
caller reads why, and a row in the provider's table allows it from then on; if a harmful one is sent, the operator pays
for what was not held, or a credential goes to a stranger. What only one provider's names mean is in its own file, as
`priced_extras`.

Names are compared without case and punctuation: `webhookUrl` is `webhook_url`.
"""

import re
from collections.abc import Mapping

from penstock.providers.spec import Model


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _plain_names(names: str) -> frozenset[str]:
    return frozenset(map(_plain, names.split()))


# ------------------------------------------------------------------------------------------------------------- redirect

_REDIRECTS = _plain_names(
    """api_base base_url api_key api_token headers extra_headers extra_body extra_query proxy proxies sync async
    delivery_method"""
)
# Also where outputs are delivered to: one that only the caller gets could not be charged.
_REDIRECTS_PATTERN = re.compile(
    r".*(webhook|callback|notifyhook|notif(y|ication)ur[li]).*"
    r"|.*(upload|storage|destination|bucket)(url|uri|endpoint|path)?|.*syncmode|.*base64output"
)
# Inside an object these are names of something else, such as the `url` of an image.
_REDIRECTS_AT_TOP_LEVEL = _plain_names(
    """key token access_token authorization organization project model_name model_id endpoint url host stream
    partial_images"""
)


def redirects(name: str, *, is_top: bool) -> bool:
    """Whether a field may change where the request is sent, as whom, which URL is called back, or where and in which
    form the response and its files come. `is_top`: it is a field of the call itself, not of an object in it.
    """
    plain = _plain(name)
    if plain in _REDIRECTS or _REDIRECTS_PATTERN.fullmatch(plain):
        return True
    return is_top and plain in _REDIRECTS_AT_TOP_LEVEL


# ---------------------------------------------------------------------------------------------------------------- price

# How many outputs are made, how long, how large and how fast: by name, and by pattern where names follow one.
_PRICED = _plain_names(
    """samples n_iter sequential_image_generation frames frames_per_second video_length width height image_size
    output_size megapixels generate_audio"""
)
_PRICED_PATTERN = re.compile(
    r"(num|number|max|nb|n)(of)?(image|output|sample|result|video|clip|variation|generation|frame)s?"
    r"|(image|output|sample|result|video|clip|variation|generation|frame)s?(count|number|num)"
    r"|.*batch.*|.*duration.*|.*seconds|.*fps|.*servicetier|.*priority"
)
# What providers of chat bill beside the tokens: searches, tools that they run themselves, other speeds and media; other
# names of the limit of output tokens; and more answers, or more text in the prompt, than was counted.
_PRICED_CHAT_PATTERN = re.compile(
    r".*(search|plugin|tier|priority|modalit|audio|ground|retriev|brows|interpreter|mcp|connector|servertool).*"
    r"|prediction|speed|fastmode"
    r"|n(um)?predict|(max|min)(new|output|gen|generated|generation|decode)?(tokens?|len|length)(tosample)?|ignoreeos"
    r"|bestof|numbeams|numreturnsequences|candidatecount|previousresponseid|conversation|fileids|cachedcontent"
)
# What OpenAI's API has beside the interface, and how chat servers that people run themselves name the ways to choose
# the next token and to show the answer. Nothing here lets an answer exceed its limit, reaches other calls, or loads
# anything.
OWN_CHAT_FIELDS = frozenset(
    """n max_completion_tokens reasoning_effort verbosity parallel_tool_calls functions function_call logprobs
    top_logprobs logit_bias metadata store user safety_identifier prompt_cache_key prompt_cache_retention
    stream_options continuous_usage_stats
    top_k min_p top_a tfs_z typical_p typical top_n_sigma repetition_penalty repeat_penalty repeat_last_n
    penalize_nl dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers xtc_probability
    xtc_threshold mirostat mirostat_mode mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent smoothing_factor
    length_penalty early_stopping stop_token_ids bad_words allowed_token_ids include_stop_str_in_output
    skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens guided_json guided_choice guided_regex
    json_schema chat_template_kwargs enable_thinking think thinking reasoning_format include_reasoning
    separate_reasoning reasoning safe_prompt cache_prompt timings_per_token return_tokens return_token_ids
    return_tokens_as_token_ids prompt_logprobs""".split()
)
# On a server of the operator's own the price depends on what its unit counts, and on nothing else. By unit: names of
# fields that change nothing about the price.
_SIZE_NAMES = _plain_names("width height image_size output_size megapixels fps frames_per_second generate_audio")
_LENGTH_NAMES = _plain_names("num_frames frames frame_count duration duration_seconds seconds video_length")
_FREE_ON_OWN_SERVER: Mapping[str, frozenset[str]] = {
    "image": _SIZE_NAMES | _LENGTH_NAMES,
    "call": _SIZE_NAMES | _LENGTH_NAMES,
    "second": _SIZE_NAMES,
}


def changes_price(model: Model, name: str) -> bool:
    """Whether a field may change what a call of the model costs."""
    plain = _plain(name)
    if name in model.op.priced_extras:
        return True
    if model.op.task == "chat":
        return _PRICED_CHAT_PATTERN.fullmatch(plain) is not None
    units = {price.unit for price in model.prices}
    has_one_price = model.on_own_server and len(units) == 1 and not any(price.when for price in model.prices)
    if has_one_price and plain in _FREE_ON_OWN_SERVER.get(units.pop(), ()):
        return False
    return plain in _PRICED or _PRICED_PATTERN.fullmatch(plain) is not None


# ---------------------------------------------------------------------------------------------------------------- files

_FILE_PATTERN = re.compile(
    r"(input|reference|source|init|start|first|last|end|tail)?(frame)?(image|video|mask|reference)s?"
    r"(input|url|uri|data|base64|ref)?s?\d*|(start|first|last|end|tail)frames?(url|uri|data)?|source"
)
_FILE_TEXT = re.compile(r"\s*(data:|[a-z][a-z0-9+.-]{1,20}://|[a-z0-9+/=_-]{200})", re.IGNORECASE)  # or base64


def is_named_like_a_file(name: str) -> bool:
    """Whether providers use such names for input files, which some of them bill."""
    return _FILE_PATTERN.fullmatch(_plain(name)) is not None


def looks_like_a_file(text: str) -> bool:
    """Whether a text is a URL, or a file as a data URL or in base64; for fields with other names."""
    return _FILE_TEXT.match(text) is not None


def asks_for_dry_run(name: str) -> bool:
    """Whether the caller means the parameter `dryRun` of the URL: a call that was to cost nothing must not be made."""
    return _plain(name) == "dryrun"
