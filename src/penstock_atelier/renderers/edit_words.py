"""The words of a prompt that say how an image is edited; kept apart from the code that edits, which needs Pillow."""

# What to do.
ADDING = frozenset({"add", "put", "place", "insert", "draw", "include", "with", "give", "paint"})
REMOVING = frozenset({"remove", "erase", "delete", "clean", "clear", "heal", "inpaint", "rid"})
BEHIND = frozenset({"background", "backdrop", "behind"})
BLENDING = frozenset({"blend", "exposure", "overlay", "merge", "mix", "fuse"})

# How the image looks afterwards, by the name of the function in `effects`.
EFFECT_WORDS = {
    "warm": "warm warmer cozy cosy",
    "cool": "cool cooler cold colder",
    "night": "night midnight nighttime",
    "grey": "grayscale greyscale monochrome noir desaturate desaturated bw",
    "sepia": "sepia vintage old antique retro nostalgic",
    "blur": "blur blurry blurred bokeh unfocused",
    "sharpen": "sharpen sharper sharp crisp detailed detail",
    "pencil": "sketch pencil drawing line lineart outline charcoal ink etching draw",
    "poster": "poster posterise posterize cartoon comic anime pop vector illustration",
    "painting": "oil painting painted paint impressionist gogh brush acrylic canvas",
    "watercolour": "watercolour watercolor aquarelle gouache",
    "invert": "invert inverted negative",
    "brighten": "bright brighten brighter lighten lighter light exposure",
    "darken": "dark darken darker moody",
    "contrast": "contrast dramatic punchy",
    "colourful": "vivid colourful colorful saturate saturated vibrant",
    "wash_out": "faded fade matte muted soft",
    "pixels": "pixel pixelate pixelated pixelart bit lowres",
    "glow": "glow glowing dreamy dream bloom ethereal magical",
    "vignette": "vignette frame framed",
    "duotone": "neon cyberpunk duotone synthwave",
    "mirror": "mirror mirrored flip flipped",
}

# What an edit may be asked with, without saying more.
_HARMLESS = "adjust apply change convert edit else everything keep leave replace sky swap turn whole".split()

# Words that need not be named as unknown, besides those that an image can be made of.
EDIT_WORDS = frozenset(
    [*ADDING, *REMOVING, *BEHIND, *BLENDING, *" ".join(EFFECT_WORDS.values()).split(), *_HARMLESS],
)
