"""Read a prompt as a list of things to draw: subjects with colour and number, the time of day, the weather."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock_atelier.renderers.palette import NAMED, Colour

# One line for each thing that can be drawn and each palette: its name in the code, then the words that mean it.
_SCENERY = """
mountains: mountain peak alps summit range volcano cliff everest fuji highlands canyon
hills: hill meadow field valley pasture countryside prairie farm grass landscape nature park vineyard
sea: sea ocean beach coast wave shore bay island harbor harbour seaside surf
lake: lake river pond water reflection fjord stream lagoon waterfall
forest: forest wood pine tree jungle grove spruce fir taiga rainforest woodland
desert: desert dune sahara sand oasis
city: city skyline town street skyscraper tokyo york london paris manhattan metropolis urban downtown building village
underwater: underwater reef coral aquarium seabed
space: space galaxy nebula universe cosmos planet orbit astronomy
flowers: tulip poppy wildflower daisy sunflower blossom garden
"""
_SKY = """
sun: sun sunny
moon: moon moonlit moonlight crescent
stars: star starry constellation milky
clouds: cloud cloudy overcast
aurora: aurora northern borealis
rainbow: rainbow
rain: rain rainy raining drizzle downpour
snow: snow snowy snowing snowfall blizzard
fog: fog foggy mist misty haze hazy smoke steam
lightning: lightning thunder thunderstorm
birds: gull seagull swallow flock crane geese
fireworks: firework
"""
_CREATURES = """
fox: fox
cat: cat kitten kitty tabby
dog: dog puppy corgi labrador shiba hound
wolf: wolf husky
bear: bear grizzly teddy
panda: panda
koala: koala
rabbit: rabbit bunny hare
lion: lion
tiger: tiger
mouse: mouse hamster rat
pig: pig piglet
cow: cow calf bull
monkey: monkey ape chimp gorilla
otter: otter beaver badger raccoon hedgehog squirrel
deer: deer stag reindeer elk moose
owl: owl
bird: bird robin sparrow parrot canary finch hummingbird raven crow duck chicken hen
penguin: penguin
fish: fish goldfish koi salmon shark
whale: whale dolphin orca
butterfly: butterfly moth
robot: robot android droid
astronaut: astronaut cosmonaut spaceman
person: person man woman girl boy child king queen lady gentleman people
"""
_THINGS = """
cup: cup mug coffee tea espresso latte cappuccino cocoa
teapot: teapot kettle
vase: vase bouquet flower rose
bottle: bottle wine
apple: apple
orange: oranges tangerine clementine
lemon: lemon lime
pear: pear
cherry: cherry cherries
bowl: bowl fruit soup
candle: candle
book: book library novel
lamp: lamp lantern
cactus: cactus succulent
pot: plant houseplant pot
cake: cake cupcake dessert birthday pie
"""
_PLACED = """
boat: boat sailboat ship yacht sailing vessel
house: house cottage cabin hut barn home
lighthouse: lighthouse beacon
castle: castle tower fortress palace
windmill: windmill mill
tent: tent camp camping
balloon: balloon
rocket: rocket spaceship spacecraft shuttle
plane: plane airplane aeroplane aircraft jet
kite: kite
umbrella: umbrella parasol
oak: oak willow birch maple elm cherrytree
palm: palm
"""
# In order of precedence: special light, then the time of day, then the season, then the weather.
_PALETTES = """
depths: underwater reef aquarium
neon: neon cyberpunk synthwave vaporwave futuristic
mono: monochrome monochromatic noir charcoal
pastel: pastel soft dreamy gentle kawaii cute
space: space galaxy nebula cosmos universe planet orbit
sunset: sunset evening
dawn: dawn sunrise daybreak
dusk: dusk twilight
night: night midnight nocturnal dark moonlit moonlight starry moon star stars firework fireworks aurora
golden: warm harvest
autumn: autumn fall autumnal october
spring: spring blossom sakura
winter: winter snow snowy ice icy frozen arctic blizzard christmas
storm: storm stormy thunder lightning gloomy rain rainy
desert: desert sahara dune
day: day noon daylight summer bright afternoon morning sun sunny
"""
_ABSTRACT = """
flow: flow wind hair stream energy music emotion
mosaic: mosaic tile stained glass crystal lowpoly polygon
bauhaus: geometric bauhaus geometry shape modern poster design logo
circles: circle dot bubble ripple sphere orb
strata: layer strata wave paper minimal minimalist
petals: mandala flower kaleidoscope symmetry symmetrical pattern ornament
"""
_NUMBERS = "one two three four five six seven eight nine".split()
_COUNTS = {word: number for number, word in enumerate(_NUMBERS, 1)} | {"pair": 2, "couple": 2, "several": 4, "many": 6}
_PORTRAIT = frozenset({"portrait", "face", "selfie", "headshot"})  # a person is drawn when no creature is named
_NOT = frozenset({"no", "without", "not", "never"})
# Words that name nothing that could be missing from an image: grammar, mood, and words about images themselves.
_HARMLESS = frozenset(
    """
    a an the this that these those some any each every other another own same such
    i we you he she it they me us him her them my our your his its their who which what whose
    and or but nor so as if than then while when where how why
    at by for from in into of off on onto out over through to toward towards under up upon with within about above
    across after against along among around before behind below beneath beside between beyond down during inside near
    next outside past until front side top middle center centre left right foreground background distance edge
    am is are was were be been being has have had having do does did can could will would shall should may might must
    make made draw drawn paint painted show shown showing look looking looks like see seen stand standing sit sitting
    there here very more most much really quite too also just only still even ever
    image picture photo photograph photography painting drawing illustration sketch render rendering art artwork view
    scene style styled quality high highly detailed detail details hd resolution realistic cinematic wallpaper
    beautiful pretty lovely nice calm quiet peaceful serene still gentle wonderful amazing stunning gorgeous majestic
    big large huge small little tiny tall old new young wide long short lonely single alone
    abstract portrait face selfie headshot no without not never
    """.split()
)
_MOST_NAMED = 12
_GROUPS = {"scenery": _SCENERY, "sky": _SKY, "creature": _CREATURES, "thing": _THINGS, "placed": _PLACED}


def _lexicon(table: str) -> dict[str, str]:
    """Names by word; a name is a word too."""
    rows = (line.partition(":") for line in table.strip().splitlines())
    return {word: name for name, _, words in rows for word in (name, *words.split())}


_WORDS = {group: _lexicon(table) for group, table in _GROUPS.items()}
_PALETTE_WORDS = _lexicon(_PALETTES)
_ABSTRACT_WORDS = _lexicon(_ABSTRACT)


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to draw: its name, and the colour and number that the prompt gives it."""

    name: str
    colour: Colour | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Brief:
    """What a prompt asks for, as far as it can be drawn."""

    scenery: tuple[Subject, ...] = ()
    sky: tuple[Subject, ...] = ()
    creatures: tuple[Subject, ...] = ()
    things: tuple[Subject, ...] = ()
    placed: tuple[Subject, ...] = ()
    palette: str | None = None
    abstract: str | None = None
    colours: tuple[Colour, ...] = ()
    words: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """True when this scenery, weather or object is asked for."""
        return any(subject.name == name for subject in (*self.scenery, *self.sky, *self.placed))


def read(prompt: str) -> Brief:
    """Read the English words of a prompt; words that are not known are ignored."""
    reader = _Reader()
    for word, is_plural in _wanted_words(prompt):
        reader.read_word(word, is_plural)
    return reader.brief(frozenset(_tokens(prompt)))


def unknown_words(prompt: str, further: frozenset[str] = frozenset()) -> list[str]:
    """Return the words of a prompt that name something and yet change nothing in the image, in their order.

    `further` are words that are known besides those of this module.
    """
    unknown = [
        word
        for word in _tokens(prompt)
        if not (
            word in _HARMLESS
            or word in further
            or word.isdecimal()
            or (len(word) == 1 and word.isascii())
            or _is_known(_singular(word))
        )
    ]
    return list(dict.fromkeys(unknown))[:_MOST_NAMED]


class _Reader:
    """Reads the words in order; a colour or a number is kept for the next thing that is named."""

    def __init__(self) -> None:
        self._found: dict[str, list[Subject]] = {group: [] for group in _GROUPS}
        self._colours: list[Colour] = []
        self._palettes: set[str] = set()
        self._abstract: str | None = None
        self._colour: Colour | None = None
        self._count: int | None = None

    def read_word(self, word: str, is_plural: bool) -> None:
        if word in NAMED:
            self._colour = NAMED[word]
            self._colours.append(self._colour)
        elif word.isdecimal() or word in _COUNTS:
            self._count = _COUNTS.get(word) or max(1, min(9, int(word[:2])))
        else:
            self._palettes |= {_PALETTE_WORDS[word]} if word in _PALETTE_WORDS else set()
            self._abstract = self._abstract or _ABSTRACT_WORDS.get(word)
            self._add_subject(word, 3 if is_plural else 1)

    def _add_subject(self, word: str, usual_count: int) -> None:
        groups = [group for group in _GROUPS if word in _WORDS[group]]
        if word == "tree" and {"oak", "palm"} & {subject.name for subject in self._found["placed"]}:
            return  # an oak tree is one tree, not a forest behind an oak
        for group in groups:
            subject = Subject(_WORDS[group][word], self._colour, self._count or usual_count)
            if all(known.name != subject.name for known in self._found[group]):
                self._found[group].append(subject)
        if groups:
            # A red boat is red itself; a red mountain gives its colour to the whole scene.
            if self._colour is not None and set(groups) & {"creature", "thing", "placed"}:
                self._colours.remove(self._colour)
            self._colour = self._count = None

    def brief(self, tokens: frozenset[str]) -> Brief:
        if tokens & _PORTRAIT and not self._found["creature"]:
            self._found["creature"].append(Subject("person", self._colour))
        palette = next((name for name in _PALETTE_WORDS.values() if name in self._palettes), None)
        scenery, above, creatures, things, placed = (tuple(self._found[group]) for group in _GROUPS)
        colours = tuple(self._colours)
        abstract = self._abstract or ("flow" if "abstract" in tokens else None)
        return Brief(scenery, above, creatures, things, placed, palette, abstract, colours, tokens)


def _wanted_words(prompt: str) -> Iterator[tuple[str, bool]]:
    """Each word in its singular, and whether it was a plural; without what follows `no` or `without`."""
    denied = False
    for word in _tokens(prompt):
        if word in _NOT:
            denied = True
            continue
        single = _singular(word)
        if not denied:
            yield single, single != word
        # "no big clouds": the denial lasts until something is named.
        denied = denied and not any(single in lexicon for lexicon in _WORDS.values())


def _tokens(text: str) -> list[str]:
    plain = text[:4000].lower().replace("coral reef", "reef")  # the animal, not the colour
    return re.findall(r"[^\W\d_]+|\d+", plain)


def _singular(word: str) -> str:
    """The singular if that is a known word, else the word itself."""
    endings = (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""))
    candidates = [word.removesuffix(ending) + instead for ending, instead in endings if word.endswith(ending)]
    return next((candidate for candidate in (word, *candidates) if _is_known(candidate)), word)


def _is_known(word: str) -> bool:
    lexicons = (_PALETTE_WORDS, _ABSTRACT_WORDS, *_WORDS.values())
    return word in NAMED or word in _COUNTS or any(word in lexicon for lexicon in lexicons)
