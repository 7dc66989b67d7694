"""Write text out as it is spoken: numbers, amounts, signs and abbreviations become words."""

import re
import unicodedata
from collections.abc import Iterator

_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_ABBREVIATIONS = {
    "mr": "mister", "mrs": "missis", "ms": "miz", "dr": "doctor", "prof": "professor", "st": "saint", "vs": "versus",
    "etc": "etcetera", "eg": "for example", "ie": "that is", "jr": "junior", "sr": "senior", "approx": "approximately",
    "no": "number",
}  # fmt: skip
_SIGNS = {
    "&": " and ", "%": " percent ", "+": " plus ", "=": " equals ", "@": " at ", "#": " number ", "°": " degrees ",
    "/": " slash ", "€": " euros ", "£": " pounds ", "_": " ", "*": " ",
}  # fmt: skip
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound"}
_UNITS = {"km": "kilometers", "kg": "kilograms", "cm": "centimeters", "mm": "millimeters", "ms": "milliseconds"}
_MONEY = re.compile(r"([$€£])\s?(\d[\d,]*)(?:\.(\d\d))?\b")
_TIME = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_UNIT = re.compile(rf"(\d)\s?({'|'.join(_UNITS)})\b")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ABBREVIATION = re.compile(rf"\b({'|'.join(_ABBREVIATIONS)})\.(?=\s)", re.IGNORECASE)
_DOTTED = re.compile(r"\b(e\.g|i\.e)\.", re.IGNORECASE)
_YEARS = range(1100, 2000)
_LARGEST = 10**15
_CLAUSE = re.compile(r"[^.!?;:,()\[\]—–…\n]*[.!?;:,()\[\]—–…\n]*")
_WORD = re.compile(r"[A-Za-z']+")


def clauses(text: str) -> Iterator[tuple[list[str], str]]:
    """The clauses of a text: the words of each, and the sign at its end, a space where there is none."""
    for match in _CLAUSE.finditer(_written_out(text)):
        found = match.group()
        words = [word.strip("'") for word in _WORD.findall(found)]
        mark = next((sign for sign in found[::-1].strip() if not sign.isalnum()), " ") if found.strip() else " "
        if kept := [word for word in words if word]:
            yield kept, mark if found.rstrip()[-1:] == mark else " "


def _written_out(text: str) -> str:
    text = text.replace("’", "'").replace("‘", "'")
    text = unicodedata.normalize("NFKD", text)
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    text = _DOTTED.sub(lambda match: _ABBREVIATIONS[match[1].lower().replace(".", "")], text)
    text = _ABBREVIATION.sub(lambda match: _ABBREVIATIONS[match[1].lower()], text)
    text = _MONEY.sub(_money, text)
    text = _TIME.sub(_time, text)
    text = _ORDINAL.sub(lambda match: ordinal(int(match[1])) if len(match[1]) < 15 else match[1], text)
    text = _UNIT.sub(lambda match: f"{match[1]} {_UNITS[match[2]]}", text)
    text = _NUMBER.sub(lambda match: _number(match.group()), text)
    return "".join(_SIGNS.get(sign, sign) for sign in text)


def _money(match: re.Match[str]) -> str:
    whole = int(match[2].replace(",", ""))
    words = f"{cardinal(whole)} {_CURRENCIES[match[1]]}{'' if whole == 1 else 's'}"
    cents = int(match[3] or 0)
    return f" {words} and {cardinal(cents)} cent{'' if cents == 1 else 's'} " if cents else f" {words} "


def _time(match: re.Match[str]) -> str:
    hours, minutes = int(match[1]), int(match[2])
    if minutes == 0:
        return f" {cardinal(hours)} o'clock "
    return f" {cardinal(hours)} {'oh ' if minutes < 10 else ''}{cardinal(minutes)} "


def _number(written: str) -> str:
    """A number in words: a year as two numbers, very long ones digit by digit."""
    whole, _, fraction = written.rstrip(",").replace(",", "").partition(".")
    if len(whole) > 15 or (whole.startswith("0") and len(whole) > 1):
        said = " ".join(_ONES[int(digit)] for digit in whole)
    elif int(whole) in _YEARS and "," not in written and not fraction:
        said = _year(int(whole))
    else:
        said = cardinal(int(whole))
    return f" {said}{' point ' + ' '.join(_ONES[int(digit)] for digit in fraction) if fraction else ''} "


def _year(year: int) -> str:
    century, rest = divmod(year, 100)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def cardinal(number: int) -> str:
    """A whole number in words."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f" {_ONES[ones]}" if ones else "")
    if number >= _LARGEST:
        return " ".join(_ONES[int(digit)] for digit in str(number))
    for scale, name in _SCALES:
        if number >= scale:
            count, rest = divmod(number, scale)
            joined = " and " if scale == 100 else " "
            return f"{cardinal(count)} {name}{joined + cardinal(rest) if rest else ''}"
    return ""


def ordinal(number: int) -> str:
    """A whole number as a place in a row: 21 is twenty first."""
    *before, last = cardinal(number).split()
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*before, _ORDINALS.get(last, regular)])
