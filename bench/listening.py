"""Have a recogniser that knows nothing of Penstock listen to the built-in voice.

    python -m bench.listening [--voice echo] [--dictated 20]

Needs `pocketsphinx`, which is no dependency of the project: `pip install pocketsphinx`. It tells 72 sentences apart
that it is given as a closed list, and writes down some of them with their words in any order. Neither says how pleasant
a voice is. The sentences are Harvard sentences, published for tests of speech in 1969.
"""

import argparse
import random
import sys
from array import array
from typing import Any

from penstock_atelier.voice.speak import speak
from penstock_atelier.voice.synthesis import RATE

SENTENCES = (
    "the birch canoe slid on the smooth planks",
    "glue the sheet to the dark blue background",
    "it is easy to tell the depth of a well",
    "these days a chicken leg is a rare dish",
    "rice is often served in round bowls",
    "the juice of lemons makes fine punch",
    "the box was thrown beside the parked truck",
    "four hours of steady work faced us",
    "a large size in stockings is hard to sell",
    "the boy was there when the sun rose",
    "a rod is used to catch pink salmon",
    "the source of the huge river is the clear spring",
    "kick the ball straight and follow through",
    "help the woman get back to her feet",
    "a pot of tea helps to pass the evening",
    "smoky fires lack flame and heat",
    "the soft cushion broke the man's fall",
    "the salt breeze came across from the sea",
    "the girl at the booth sold fifty bonds",
    "the small pup gnawed a hole in the sock",
    "the fish twisted and turned on the bent hook",
    "press the pants and sew a button on the vest",
    "the swan dive was far short of perfect",
    "the beauty of the view stunned the young boy",
    "two blue fish swam in the tank",
    "her purse was full of useless trash",
    "the colt reared and threw the tall rider",
    "it snowed rained and hailed the same morning",
    "read verse out loud for pleasure",
    "hoist the load to your left shoulder",
    "take the winding path to reach the lake",
    "note closely the size of the gas tank",
    "wipe the grease off his dirty face",
    "mend the coat before you go out",
    "the wrist was badly strained and hung limp",
    "the stray cat gave birth to kittens",
    "the young girl gave no clear response",
    "the meal was cooked before the bell rang",
    "what joy there is in living",
    "a king ruled the state in the early days",
    "the ship was torn apart on the sharp reef",
    "sickness kept him home the third week",
    "the wide road shimmered in the hot sun",
    "the lazy cow lay in the cool grass",
    "lift the square stone over the fence",
    "the rope will bind the seven books at once",
    "hop over the fence and plunge in",
    "the friendly gang left the drug store",
    "mesh wire keeps chicks inside",
    "the frosty air passed through the coat",
    "the crooked maze failed to fool the mouse",
    "adding fast leads to wrong sums",
    "the show was a flop from the very start",
    "a saw is a tool used for making boards",
    "the wagon moved on well oiled wheels",
    "march the soldiers past the next hill",
    "a cup of sugar makes sweet fudge",
    "place a rosebush near the porch steps",
    "both lost their lives in the raging storm",
    "we talked of the side show in the circus",
    "use a pencil to write the first draft",
    "he ran half way to the hardware store",
    "the clock struck to mark the third period",
    "a small creek cut across the field",
    "cars and busses stalled in snow drifts",
    "the set of china hit the floor with a crash",
    "this is a grand season for hikes on the road",
    "the dune rose from the edge of the water",
    "those words were the cue for the actor to leave",
    "a yacht slid around the point into the bay",
    "the two met while playing on the sand",
    "the ink stain dried on the finished page",
)
_HEARD_RATE = 16_000
_NOISES = 10


def said(text: str, voice: str) -> bytes:
    """The sentence at the rate of the recogniser, by linear interpolation."""
    made = bytearray()
    speak(made.extend, text=text.capitalize() + ".", voice=voice, speed=1.0)
    samples = array("h", bytes(made))
    step = RATE / _HEARD_RATE
    places = (at * step for at in range(int((len(samples) - 1) / step)))
    return array("h", (_between(samples, place) for place in places)).tobytes()


def _between(samples: Any, place: float) -> int:
    first = int(place)
    part = place - first
    return int(samples[first] * (1 - part) + samples[first + 1] * part)


def noise(seconds: float) -> bytes:
    source = random.Random(7)
    return array("h", (source.randint(-6000, 6000) for _ in range(int(seconds * _HEARD_RATE)))).tobytes()


class Recogniser:
    """Listens within one of several grammars."""

    def __init__(self, **grammars: str) -> None:
        from pocketsphinx import Decoder  # type: ignore[import-not-found]

        self._decoder = Decoder(samprate=_HEARD_RATE, loglevel="FATAL", lm=None)
        for name, grammar in grammars.items():
            self._decoder.add_jsgf_string(name, f"#JSGF V1.0; grammar {name}; public <said> = {grammar};")

    def heard(self, grammar: str, samples: bytes) -> str:
        """What it makes of a sound; empty if nothing fits."""
        self._decoder.activate_search(grammar)
        self._decoder.start_utt()
        self._decoder.process_raw(samples, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return str(found.hypstr) if found else ""


def word_errors(wanted: list[str], found: list[str]) -> int:
    """How many words must be added, removed or replaced."""
    costs = list(range(len(found) + 1))
    for row, word in enumerate(wanted, 1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(found, 1):
            change = before + (word != other)
            before = costs[column]
            costs[column] = min(change, costs[column] + 1, costs[column - 1] + 1)
    return costs[-1]


def main(voice: str, dictated: tuple[str, ...]) -> None:
    words = sorted({word for sentence in dictated for word in sentence.split()})
    recogniser = Recogniser(sentences=" | ".join(SENTENCES), words=f"({' | '.join(words)})+")
    told = sum(recogniser.heard("sentences", said(sentence, voice)) == sentence for sentence in SENTENCES)
    seconds = [2.5 + 0.1 * (number % 10) for number in range(_NOISES)]
    mistaken = sum(recogniser.heard("sentences", noise(each)) != "" for each in seconds)
    print(
        f"{voice}: {told} of {len(SENTENCES)} sentences told apart; white noise taken for one {mistaken} of {_NOISES} "
        "times",
        flush=True,
    )
    pairs = [(sentence.split(), recogniser.heard("words", said(sentence, voice)).split()) for sentence in dictated]
    share = sum(word_errors(*pair) for pair in pairs) / sum(len(wanted) for wanted, _ in pairs)
    print(f"{voice}: {100 * share:.0f} % word errors among {len(words)} words in any order")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voice", default="echo")
    parser.add_argument("--dictated", type=int, default=20, help="how many sentences are written down word by word")
    options = parser.parse_args()
    try:
        main(options.voice, SENTENCES[: options.dictated])
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}. It is no dependency of the project: pip install pocketsphinx")
