"""Clean vector images: keep the parts of SVG that draw, and nothing that runs, fetches or refers to other files."""

import re
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from penstock.imaging.convert import BadImage, ImageFile
from penstock.imaging.formats import SVG_TYPE

# An SVG is a document: opened in a browser, it can run scripts in the origin that it came from, load files, and take
# the place of a page. Callers paste SVGs into their own pages, too, so no header of a response is enough. What is not
# listed here is left out: scripts, event handlers, links, animations, HTML, comments, entities and foreign names.

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
XLINK_NAMESPACE = "http://www.w3.org/1999/xlink"
MAX_BYTES = 16 * 1024 * 1024
MAX_ELEMENTS = 200_000
MAX_DEPTH = 100
_DEFAULT_SIDE = 1024  # of an image that says neither its size nor its view box

_ELEMENTS = frozenset(
    "svg g defs symbol use title desc switch path rect circle ellipse line polyline polygon text tspan textPath "
    "image style linearGradient radialGradient stop pattern clipPath mask marker filter feBlend feColorMatrix "
    "feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow "
    "feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight "
    "feSpecularLighting feSpotLight feTile feTurbulence".split()
)
_ATTRIBUTES = frozenset(
    "id class style lang d x y x1 x2 y1 y2 cx cy r rx ry fx fy fr dx dy width height viewBox version "
    "preserveAspectRatio transform points pathLength offset rotate textLength lengthAdjust startOffset "
    "method spacing side href gradientUnits gradientTransform spreadMethod patternUnits "
    "patternContentUnits patternTransform clipPathUnits maskUnits maskContentUnits mask-type markerUnits "
    "markerWidth markerHeight refX refY orient filterUnits primitiveUnits in in2 result mode type values "
    "tableValues slope intercept amplitude exponent operator k1 k2 k3 k4 order kernelMatrix divisor bias "
    "targetX targetY edgeMode preserveAlpha surfaceScale diffuseConstant specularConstant "
    "specularExponent limitingConeAngle azimuth elevation z pointsAtX pointsAtY pointsAtZ scale "
    "xChannelSelector yChannelSelector stdDeviation radius baseFrequency numOctaves seed stitchTiles "
    "flood-color flood-opacity lighting-color color color-interpolation color-interpolation-filters "
    "color-rendering display visibility opacity overflow clip clip-path clip-rule mask filter fill "
    "fill-opacity fill-rule stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin "
    "stroke-miterlimit stroke-opacity stroke-width stop-color stop-opacity marker-start marker-mid "
    "marker-end paint-order shape-rendering text-rendering image-rendering vector-effect font-family "
    "font-size font-size-adjust font-stretch font-style font-variant font-weight letter-spacing "
    "word-spacing text-anchor text-decoration text-transform dominant-baseline alignment-baseline "
    "baseline-shift direction unicode-bidi writing-mode isolation mix-blend-mode".split()
)
_TEXT_ONLY = frozenset({"title", "desc", "style"})
_LOCAL = re.compile(r"#[^\s\"'()<>]+")
_EMBEDDED_IMAGE = re.compile(r"data:image/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=\s]+")
# In CSS and in presentation attributes: other files, old scripts, escapes that hide them, and rules that import.
_UNSAFE_CSS = re.compile(
    r"url\s*\((?!\s*[\"']?#)|image(-set)?\s*\(|src\s*\(|expression|javascript|behavior|-moz-binding|[@\\<]",
    re.IGNORECASE,
)
_SEAL_NAMESPACE = b' xmlns:c2pa="http://c2pa.org/manifest"'
_SEAL = re.compile(rb"<metadata><c2pa:manifest>[A-Za-z0-9+/=]+</c2pa:manifest></metadata>")  # stands first
_NUMBER = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(px|pt|mm|cm|in)?\s*")
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}


def clean(data: bytes) -> ImageFile:
    """Return an SVG with nothing but what draws; cleaning it again changes nothing. Raises BadImage."""
    if len(data) > MAX_BYTES:
        raise BadImage(f"The SVG has more than {MAX_BYTES} bytes.")
    document = _Document()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = document.refuse_entities
    parser.StartElementHandler = document.start
    parser.EndElementHandler = document.end
    parser.CharacterDataHandler = document.add_text
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        raise BadImage("The SVG is not well-formed XML.") from None
    if not document.pieces:
        raise BadImage("The file is not an SVG.")
    cleaned = "".join(document.pieces).encode()
    return ImageFile(cleaned, SVG_TYPE, *document.size)


def is_cleaned(data: bytes) -> dict[str, bool]:
    """Say whether a file is an SVG that `clean` does not change but for one seal, as `penstock.provenance` adds it."""
    root, _, rest = data.partition(b">")
    plain = root.replace(_SEAL_NAMESPACE, b"", 1) + b">" + _SEAL.sub(b"", rest, count=1) if _SEAL.match(rest) else data
    try:
        return {"is_cleaned": clean(plain).data == plain}
    except BadImage:
        return {"is_cleaned": False}


class _Document:
    """Collects what is kept of a document while it is parsed."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.size = (_DEFAULT_SIDE, _DEFAULT_SIDE)
        self._names: list[str | None] = []  # of the open elements; None for those that are left out
        self._elements = 0
        self._skipped = 0  # how many open elements are left out
        self._css: list[str] | None = None  # of the open `style` element

    def refuse_entities(
        self, _name: str, _system_id: str | None, _public_id: str | None, has_internal_subset: bool
    ) -> None:
        if has_internal_subset:
            raise BadImage("The SVG declares entities.")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS or len(self._names) >= MAX_DEPTH:
            raise BadImage("The SVG has too many elements.")
        namespace, _, local = name.rpartition(" ")
        parent = self._names[-1] if self._names else ""
        is_kept = namespace == SVG_NAMESPACE and local in _ELEMENTS and not self._skipped and parent not in _TEXT_ONLY
        if not self._names and (not is_kept or local != "svg"):
            raise BadImage("The file is not an SVG.")
        self._names.append(local if is_kept else None)
        if not is_kept:
            self._skipped += 1
            return
        kept = {name: value for name, value in map(_attribute, attributes.items()) if _is_safe(local, name, value)}
        if len(self._names) == 1:
            self.size = _size(kept)
            kept = {"xmlns": SVG_NAMESPACE, "xmlns:xlink": XLINK_NAMESPACE, **kept}
        if local == "style":
            self._css = []
        self.pieces.append(f"<{local}{''.join(f' {name}={quoteattr(value)}' for name, value in kept.items())}>")

    def end(self, _name: str) -> None:
        local = self._names.pop()
        if local is None:
            self._skipped -= 1
            return
        if local == "style":
            css = "".join(self._css or ())
            self._css = None
            self.pieces.append("" if _UNSAFE_CSS.search(css) else _escape(css))
        self.pieces.append(f"</{local}>")

    def add_text(self, text: str) -> None:
        if self._css is not None and not self._skipped:
            self._css.append(text)
        elif not self._skipped:
            self.pieces.append(_escape(text))


def _escape(text: str) -> str:
    """Text for XML; a carriage return is written as a number, because a parser would read it as a line feed."""
    return escape(text, {"\r": "&#13;"})


def _attribute(item: tuple[str, str]) -> tuple[str, str]:
    """The name of an attribute as it is written, and its value. Foreign names stay as they are, and are not kept."""
    name, value = item
    namespace, _, local = name.rpartition(" ")
    if namespace == XLINK_NAMESPACE and local == "href":
        return "xlink:href", value
    return (name if namespace else local), value


def _is_safe(element: str, name: str, value: str) -> bool:
    if name in ("href", "xlink:href"):
        return bool(_LOCAL.fullmatch(value) or (element == "image" and _EMBEDDED_IMAGE.fullmatch(value)))
    return name in _ATTRIBUTES and not _UNSAFE_CSS.search(value)


def _size(root: dict[str, str]) -> tuple[int, int]:
    """The size in pixels that the root element states, or that of its view box."""
    width, height = (_pixels(root.get(name, "")) for name in ("width", "height"))
    box = root.get("viewBox", "").replace(",", " ").split()
    if len(box) == 4 and not (width and height):
        width, height = _pixels(box[2]), _pixels(box[3])
    return (width, height) if width and height else (_DEFAULT_SIDE, _DEFAULT_SIDE)


def _pixels(text: str) -> int:
    found = _NUMBER.fullmatch(text)
    return round(float(found[1]) * _PIXELS[found[2] or ""]) if found else 0
