"""The page of `penstock recordings check`: what was compared, with pictures and texts side by side, in one file."""

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import Any

import msgspec

from penstock.recordings.drift import Change, Side

_LONGEST_TEXT = 4000
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --weak: #888; --bad: #c62828; --good: #2e7d32; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
.drifted { color: var(--bad); } .same { color: var(--good); } .skipped, small { color: var(--weak); }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin: 1rem 0; }
figure { margin: 0; } img { max-width: 100%; border: 1px solid var(--line); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); padding: .6rem; margin: 0; }
"""


class Picture(msgspec.Struct, frozen=True):
    """Small copies of a recorded picture and of the new one, as WebP, and how different they look."""

    before: bytes | None
    after: bytes | None
    distance: float | None  # None: one of them cannot be read


class CheckedCall(msgspec.Struct, frozen=True):
    """A recording, the one that was made now, and what has changed."""

    name: str
    before: Side
    after: Side | None = None  # None: the call was skipped, or failed
    changes: tuple[Change, ...] = ()
    pictures: tuple[Picture, ...] = ()
    skipped: str = ""  # why it was not made again

    @property
    def verdict(self) -> str:
        return "skipped" if self.skipped else "drifted" if self.changes else "same"

    @property
    def texts(self) -> list[str]:
        return [self.skipped] if self.skipped else [f"{change.kind}: {change.text}" for change in self.changes]

    @property
    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "recording": self.name,
            "model": self.before.document.model,
            "result": self.verdict,
            "changes": [{"kind": change.kind, "text": change.text} for change in self.changes],
            "skipped": self.skipped or None,
            "distances": [picture.distance for picture in self.pictures],
            "cost": [_cost(self.before), _cost(self.after)],
            "duration_ms": [self.before.document.duration_ms, self.after and self.after.document.duration_ms],
        }


def _cost(side: Side | None) -> str | None:
    return None if side is None or side.cost is None else f"{side.cost:f}"


def report_page(checked: list[CheckedCall]) -> str:
    """The page. It loads nothing and runs nothing; all that others wrote is escaped."""
    drifted = sum(call.verdict == "drifted" for call in checked)
    rows = "".join(map(_row, checked))
    details = "".join(map(_details, checked))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Recordings, made again</title><style>{_STYLE}</style>"
        f"<h1>Recordings, made again</h1><p>{drifted} of {len(checked)} have changed.</p>"
        "<table><thead><tr><th>Recording<th>Model<th>Result<th>Cost<th>Seconds<th>Distance</thead>"
        f"<tbody>{rows}</tbody></table>{details}</html>\n"
    )


def _row(call: CheckedCall) -> str:
    distances = ", ".join("?" if far is None else f"{far:.2f}" for far in (each.distance for each in call.pictures))
    after = call.after
    costs = f"{_cost(call.before) or '?'} → {_cost(after) or '?'}"
    seconds = f"{call.before.document.duration_ms / 1000:.1f} → " + (
        f"{after.document.duration_ms / 1000:.1f}" if after else "?"
    )
    return (
        f'<tr><td><a href="#{_anchor(call)}">{escape(call.name)}</a><td>{escape(call.before.document.model)}'
        f'<td class="{call.verdict}">{call.verdict}<td>{costs}<td>{seconds}<td>{distances}'
    )


def _anchor(call: CheckedCall) -> str:
    return escape(call.before.document.id)


def _details(call: CheckedCall) -> str:
    request = msgspec.json.format(msgspec.json.encode(call.before.document.request), indent=2).decode()
    texts = "".join(f"<li>{escape(text)}" for text in call.texts) or "<li>no change"
    return (
        f'<section id="{_anchor(call)}"><h2>{escape(call.name)}</h2><ul class="{call.verdict}">{texts}</ul>'
        f"<details><summary>Request</summary><pre>{escape(request)}</pre></details>{''.join(_pairs(call))}</section>"
    )


def _pairs(call: CheckedCall) -> Iterator[str]:
    """What was recorded and what came now, side by side."""
    for picture in call.pictures:
        far = "not compared" if picture.distance is None else f"distance {picture.distance:.2f}"
        yield _pair(_image(picture.before), _image(picture.after), f"now, {far}")
    if call.before.document.task == "chat" and call.after:
        yield _pair(_text(call.before), _text(call.after), "now")


def _pair(before: str, after: str, now: str) -> str:
    return (
        f'<div class="pair"><figure>{before}<figcaption><small>recorded</small></figcaption></figure>'
        f"<figure>{after}<figcaption><small>{now}</small></figcaption></figure></div>"
    )


def _image(data: bytes | None) -> str:
    if data is None:
        return "<p>This file cannot be shown.</p>"
    return f'<img alt="" src="data:image/webp;base64,{b64encode(data).decode()}">'


def _text(side: Side) -> str:
    text = side.media[0].decode(errors="replace")
    return f"<pre>{escape(text[:_LONGEST_TEXT])}{'…' if len(text) > _LONGEST_TEXT else ''}</pre>"
