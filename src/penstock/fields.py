"""The fields of each endpoint."""

from collections.abc import Mapping

from penstock.field_types import Field as Field
from penstock.field_types import Table as Table
from penstock.field_types import UploadedFile as UploadedFile
from penstock.field_types import array_field as array_field
from penstock.field_types import check_field as check_field
from penstock.field_types import field_table as field_table
from penstock.field_types import flag_field as flag_field
from penstock.field_types import integer_field as integer_field
from penstock.field_types import number_field as number_field
from penstock.field_types import number_text as number_text
from penstock.field_types import object_field as object_field
from penstock.field_types import text_field as text_field
from penstock.imaging.formats import ALL_FORMATS
from penstock.sound.formats import DEFAULT_RATE, FILE_FORMATS, SAMPLE_RATES, SOUND_FORMATS
from penstock.values import IMAGE_FORMS, SHORT_SIDES

AUTO = "auto"
_THINKING = ("off", "on", "minimal", "high")
_QUALITIES = ("standard", "hd", "auto", "low", "medium", "high", "xhigh", "max")

# Lists return the texts of up to a hundred requests, so every text has a limit; most models have a lower one.
PROMPT_LENGTH_MAX = 32_000
SPEECH_LENGTH_MAX = 100_000  # about two hours
_SHAPE_LENGTH_MAX = 64
TRANSCRIPT_FORMS = ("json", "text", "srt", "vtt", "verbose_json", "diarized_json")

_MODEL = text_field("model", "Model identifier.", required=True, max_length=256)
_SESSION = text_field("session_id", "Groups requests in the records.", max_length=256)
_LABELS = object_field("labels", "Declared names with your values, by which costs are grouped; see Labels.")
_RECORDS = (
    text_field("user", "Identifier of your end user.", handling="passthrough", max_length=512),
    _SESSION,
    _LABELS,
)
_IDEMPOTENCY_KEY = text_field(
    "idempotency_key", "A call that is sent again with its key is not made or charged again.", max_length=256
)
_PROVIDER = object_field(
    "provider",
    "Which providers are tried, in which order and at what price.",
    has_parts=True,
)
_ASYNCHRONOUS = (
    text_field("webhook_url", "HTTPS URL that gets an event when an asynchronous request ends.", max_length=2048),
    text_field(
        "media_retention",
        "How long produced media is kept, such as `12h` or `7d`; `0`: until it is delivered.",
        max_length=16,
    ),
)
_PROVENANCE = Field(
    name="provenance",
    types=("string", "object"),
    about="What becomes of Content Credentials: `off`, `keep` or `sign`, or `{mode, required, include}`.",
    has_parts=True,
)
_DELIVERY = (
    Field(
        name="deliver_to",
        types=("string", "object"),
        about="Destination of copies of the outputs: its id, `none`, or `{bucket, path}`.",
        has_parts=True,
    ),
    flag_field("deliver_required", "Whether the call fails if the outputs cannot be copied."),
)
_FRAME = (
    text_field(
        "aspect_ratio",
        "Proportion such as `16:9`, when `size` gives no pixels.",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    text_field(
        "resolution", "How large, when `size` gives no pixels.", one_of=tuple(SHORT_SIDES), handling="converted"
    ),
)
_OUTPUT = (
    text_field("response_format", "How images are returned.", one_of=IMAGE_FORMS, default="url", handling="emulated"),
    text_field("output_format", "File format of the images.", one_of=ALL_FORMATS, default="png", handling="emulated"),
    integer_field(
        "output_compression", "Quality of jpeg, webp, avif.", low=1, high=100, default=100, handling="emulated"
    ),
)
_STREAM = (
    flag_field("stream", "Respond with server-sent events; the images are in base64."),
    integer_field("partial_images", "Streams of one image: how many unfinished ones at most.", low=0, high=3),
)
_MODEL_EFFORT = (
    text_field("thinking", "How much the model thinks.", one_of=_THINKING, handling="converted"),
    text_field("thinking_level", "Another name of `thinking`.", one_of=_THINKING, alias_of="thinking"),
    text_field(
        "prompt_enhancement", "Let the provider rewrite the prompt.", one_of=("on", "off"), handling="converted"
    ),
)

IMAGE = field_table(
    text_field("prompt", "Description of the image.", required=True, max_length=PROMPT_LENGTH_MAX, handling="renamed"),
    _MODEL,
    integer_field("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    text_field(
        "size",
        "`WIDTHxHEIGHT`, or a proportion such as `16:9`.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    text_field("quality", "Quality of the image.", one_of=_QUALITIES, default="standard", handling="passthrough"),
    text_field("style", "Style of the image.", one_of=("vivid", "natural"), default="vivid", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A repeated key returns the first images, and costs nothing.", max_length=256),
    _PROVIDER,
    _PROVENANCE,
)

EDIT = field_table(
    Field(
        name="image",
        types=("file", "array"),
        about="PNG, WebP or JPEG; repeat as `image[]`; in JSON a data URI or an HTTPS URL.",
        required=True,
        handling="renamed",
    ),
    text_field(
        "prompt", "What to change; not needed by upscale models.", max_length=PROMPT_LENGTH_MAX, handling="renamed"
    ),
    _MODEL,
    Field(
        name="mask",
        types=("file", "string", "object"),
        about="PNG of the image's dimensions; where it is fully transparent, the image is edited.",
        handling="passthrough",
    ),
    integer_field("n", "How many images.", low=1, high=10, default=1, handling="emulated"),
    text_field(
        "size",
        "As for generation; `auto` is the first image's size.",
        default="1024x1024",
        max_length=_SHAPE_LENGTH_MAX,
        handling="converted",
    ),
    *_FRAME,
    text_field("quality", "Quality of the image.", one_of=_QUALITIES, default="auto", handling="passthrough"),
    *_OUTPUT,
    *_STREAM,
    number_field(
        "scale_factor", "Upscale models: multiplies each dimension.", low=0, high=1_000_000, handling="renamed"
    ),
    *_MODEL_EFFORT,
    *_RECORDS,
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A repeated key returns the first images, and costs nothing.", max_length=256),
    _PROVIDER,
    _PROVENANCE,
)

VIDEO = field_table(
    text_field(
        "prompt",
        "Description of the video; models that upscale an input video need none.",
        required=True,
        max_length=PROMPT_LENGTH_MAX,
        handling="renamed",
    ),
    _MODEL,
    Field(name="seconds", types=("string", "number"), about="Length of the video in seconds.", handling="converted"),
    Field(name="duration", types=("string", "number"), about="Another name of `seconds`.", alias_of="seconds"),
    text_field(
        "size", "`WIDTHxHEIGHT`, or a proportion such as `16:9`.", max_length=_SHAPE_LENGTH_MAX, handling="converted"
    ),
    integer_field("n", "How many videos.", low=1, high=4, default=1, handling="emulated"),
    *_FRAME,
    Field(
        name="input_reference",
        types=("object", "array", "string", "file"),
        about="Images to begin with or to refer to, `{image_url}`, or a video to change or to extend, `{video_url}`; "
        "each perhaps with a `role`; or files in a form.",
        handling="renamed",
    ),
    text_field("negative_prompt", "What to avoid.", max_length=5000, handling="renamed"),
    number_field(
        "scale_factor", "Models that upscale videos: multiplies each side.", low=0, high=100, handling="renamed"
    ),
    flag_field("generate_audio", "Whether the video has sound.", handling="renamed"),
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A repeated key returns the first video.", max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with the video."),
    *_RECORDS,
    _PROVIDER,
    _PROVENANCE,
)

CHAT = field_table(
    _MODEL,
    array_field("messages", "The conversation.", required=True),
    flag_field("stream", "Respond with server-sent events.", default=False),
    number_field("temperature", "Randomness.", low=0, high=2, default=1),
    integer_field("max_tokens", "Maximum number of output tokens.", low=1),
    number_field("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    number_field("frequency_penalty", "Positive values reduce repetition.", low=-2, high=2, default=0),
    number_field("presence_penalty", "Positive values favour new topics.", low=-2, high=2, default=0),
    Field(name="stop", types=("string", "array"), about="Up to 4 sequences that end the response."),
    array_field("tools", "Functions the model may call."),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one function."),
    object_field("response_format", "`{type: json_object}` asks for JSON."),
    integer_field("seed", "For repeatable responses, where supported."),
    text_field("user", "Identifier of your end user.", max_length=512),
    flag_field("logprobs", "Return log probabilities.", default=False),
    integer_field("top_logprobs", "Alternatives per token; needs `logprobs`.", low=0, high=20),
    object_field("stream_options", "`include_usage` adds a last chunk with usage."),
    _IDEMPOTENCY_KEY,
    _SESSION,
    _LABELS,
    _PROVIDER,
)

RESPONSES = field_table(
    _MODEL,
    Field(name="input", types=("string", "array"), about="The conversation: a text, or items.", required=True),
    text_field("instructions", "What the model is told before the conversation."),
    flag_field("stream", "Respond with server-sent events.", default=False),
    number_field("temperature", "Randomness.", low=0, high=2, default=1),
    number_field("top_p", "Nucleus sampling.", low=0, high=1, default=1),
    integer_field("max_output_tokens", "Maximum number of output tokens.", low=1),
    array_field(
        "tools",
        "Functions, custom tools and `image_generation`.",
    ),
    Field(name="tool_choice", types=("string", "object"), about="`none`, `auto`, `required` or one tool."),
    flag_field("parallel_tool_calls", "Whether several tools may be called at once."),
    integer_field("max_tool_calls", "How many images `image_generation` may make, ten at most.", low=0),
    object_field("text", "`format`: `text`, `json_object` or `json_schema`."),
    object_field("reasoning", "`effort` is passed on to models that think."),
    array_field("include", "`message.output_text.logprobs` or `reasoning.encrypted_content`."),
    integer_field("top_logprobs", "Alternatives per token, with `include`.", low=0, high=20),
    object_field("metadata", "Up to 16 pairs of strings, returned with the response."),
    flag_field("store", "Accepted; nothing is stored."),
    text_field("user", "Identifier of your end user.", max_length=512),
    _IDEMPOTENCY_KEY,
    _SESSION,
    _LABELS,
    _PROVIDER,
)

SPEECH = field_table(
    Field(
        name="input",
        types=("string", "array"),
        about="The text to speak; or up to 100 turns, `{text, voice, instructions}`, spoken one after the other.",
        required=True,
        max_length=SPEECH_LENGTH_MAX,
        handling="emulated",
    ),
    _MODEL,
    Field(
        name="voice",
        types=("string", "object"),
        about="One of OpenAI's voices, on every model; or a voice of the model, by its name or as `{id}`.",
        handling="converted",
    ),
    text_field("instructions", "How to speak, for models that can be told.", max_length=4096, handling="converted"),
    text_field("response_format", "Format of the sound.", one_of=SOUND_FORMATS, default="mp3", handling="emulated"),
    number_field("speed", "How fast, at the same pitch.", low=0.25, high=4, default=1, handling="emulated"),
    text_field(
        "stream_format",
        "`sse`: the sound comes in server-sent events, in base64.",
        one_of=("audio", "sse"),
        default="audio",
        handling="emulated",
    ),
    text_field("language", "Language of the text, such as `en` or `pt-BR`.", max_length=35, handling="converted"),
    integer_field(
        "sample_rate",
        "Samples a second of `wav`, `pcm` and `flac`.",
        one_of=SAMPLE_RATES,
        default=DEFAULT_RATE,
        handling="emulated",
    ),
    object_field(
        "reference_audio",
        "A voice to imitate, for models that take one: `{audio, text, consent}`, a data URI or an HTTPS URL of 2 to 30 "
        "seconds, what is said in it, and `true`.",
        has_parts=True,
        handling="converted",
    ),
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A repeated key returns the first sound, and costs nothing.", max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with a sound that is kept."),
    *_RECORDS,
    _PROVIDER,
)

_LISTENING = (
    Field(
        name="file",
        types=("file",),
        about="In a form: flac, mp3, mp4, m4a, mpeg, mpga, oga, ogg, wav or webm; the sound of a video, too.",
    ),
    object_field("input_audio", "In JSON: `{data, format}` with base64, or `{url}`."),
    text_field("file_url", "HTTPS URL of the file, in place of it.", max_length=8192),
    _MODEL,
    text_field("prompt", "What comes before, or names that are said.", max_length=PROMPT_LENGTH_MAX,
               handling="passthrough"),
    text_field("response_format", "Form of the transcript.", one_of=TRANSCRIPT_FORMS, default="json",
               handling="emulated"),
    number_field("temperature", "Randomness.", low=0, high=1, default=0, handling="passthrough"),
    array_field("timestamp_granularities", "`word` or `segment`, for `verbose_json`.", handling="emulated"),
    flag_field("stream", "Respond with server-sent events.", default=False, handling="emulated"),
    flag_field("original", "Send the file as it is, to models that are priced by the token.", default=False,
               handling="emulated"),
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A call that is sent again with its key is not made or charged again.",
               max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with a transcript that is kept."),
    *_RECORDS,
    _PROVIDER,
)  # fmt: skip
TRANSCRIPTION = field_table(
    *_LISTENING,
    text_field("language", "Language that is spoken, such as `en`.", max_length=35, handling="passthrough"),
    array_field("languages", "Languages that may be spoken.", handling="passthrough"),
    array_field("keywords", "Words and names that may be said.", handling="renamed"),
    array_field("include", "`logprobs`, where the model has them.", handling="converted"),
    Field(name="chunking_strategy", types=("string", "object"), about="How the model cuts the sound, where it does.",
          handling="passthrough"),
    flag_field("diarize", "Say who speaks.", default=False, handling="converted"),
    integer_field("max_speakers", "How many people speak at most.", low=1, high=32, handling="renamed"),
    array_field("known_speaker_names", "Up to four people who may speak.", handling="renamed"),
    array_field("known_speaker_references", "A sound of each of them, of 2 to 10 seconds: data URIs or HTTPS URLs.",
                handling="converted"),
)  # fmt: skip
TRANSLATION = field_table(*_LISTENING)
SOUND = field_table(
    text_field(
        "prompt",
        "Description of the sound or the music; not needed beside `lyrics`.",
        required=True,
        max_length=PROMPT_LENGTH_MAX,
        handling="renamed",
    ),
    _MODEL,
    Field(name="seconds", types=("string", "number"), about="Length of the sound in seconds.", handling="converted"),
    Field(name="duration", types=("string", "number"), about="Another name of `seconds`.", alias_of="seconds"),
    integer_field("n", "How many sounds.", low=1, high=4, default=1, handling="emulated"),
    text_field("output_format", "Format of the file.", one_of=FILE_FORMATS, default="mp3", handling="emulated"),
    text_field("response_format", "Another name of `output_format`.", one_of=FILE_FORMATS, alias_of="output_format"),
    text_field("lyrics", "The words of a song.", max_length=PROMPT_LENGTH_MAX, handling="renamed"),
    flag_field("instrumental", "Music without a voice.", handling="renamed"),
    flag_field("loop", "A sound whose end fits its beginning.", handling="renamed"),
    text_field("negative_prompt", "What to avoid.", max_length=5000, handling="renamed"),
    integer_field("seed", "For repeatable results, where supported.", low=0, high=2**53, handling="renamed"),
    text_field("language", "Language of a song, such as `en` or `pt-BR`.", max_length=35, handling="converted"),
    *_ASYNCHRONOUS,
    *_DELIVERY,
    text_field("idempotency_key", "A repeated key returns the first sound.", max_length=256),
    object_field("metadata", "Your own pairs of strings, stored with the sound."),
    *_RECORDS,
    _PROVIDER,
)

TABLES: Mapping[str, Table] = {
    "image": IMAGE,
    "edit": EDIT,
    "upscale": EDIT,
    "video": VIDEO,
    "chat": CHAT,
    "speech": SPEECH,
    "transcription": TRANSCRIPTION,
    "translation": TRANSLATION,
    "sound": SOUND,
}
