"""Read how large the frames of a video are from what its decoder reads, whatever the file's headers say."""

from collections.abc import Callable

from penstock.imaging.convert import BadImage
from penstock.imaging.sniff import big_endian
from penstock.imaging.video_boxes import Place, named_boxes, sample_places, sample_tables

Size = tuple[int, int]

CODECS = "H.264, H.265, AV1 or ProRes"
_UNITS_MAX = 4_000_000  # units of all samples that are read; about a second of work for each million
_PARAMETER_BYTES_MAX = 4096  # of the parameters of a stream, which have some hundred at most
_ENTRY_HEAD_BYTES = 78  # of the description of samples, before its boxes
# Boxes from which decoders take their parameters, and boxes in which other boxes may be.
_PARAMETER_BOXES = frozenset(
    b"avcC hvcC av1C vpcC vvcC glbl esds wave jp2h dvc1 moov trak mdia minf stbl stsd dinf udta sinf".split()
)


def coded_sizes(data: bytes, track: Place) -> set[Size]:
    """The sizes of all frames that a decoder may make of a track, and those in the description of its samples.

    Raises BadImage for other codecs than CODECS, and for samples that are not as their codec says.
    """
    sizes: set[Size] = set()
    readers = []
    for description in sample_tables(data, track, b"stsd"):
        for name, (start, end) in named_boxes(data, (description[0] + 8, description[1])):
            sizes.add((big_endian(data, start + 24, 2), big_endian(data, start + 26, 2)))
            readers.append(_reader(data, name, (start + _ENTRY_HEAD_BYTES, end), sizes))
    if len(readers) != 1:  # samples of each description would have to be told apart
        raise BadImage("The video must have one description of its samples.")
    units = 0
    for sample in sample_places(data, track):
        units += readers[0](data, sample, sizes)
        if units > _UNITS_MAX:
            raise BadImage("The file has too many parts.")
    return sizes


Reader = Callable[[bytes, Place, set[Size]], int]


def _reader(data: bytes, name: bytes, children: Place, sizes: set[Size]) -> Reader:
    """What adds the sizes of a sample to a set and returns the number of its units; the sizes that are stated for all
    samples are added at once.
    """
    if name in _PRORES:
        return _read_prores
    wanted, read_parameters = _CONFIGURATIONS.get(name, (b"", None))
    found = [(box, place) for box, place in named_boxes(data, children) if box in _PARAMETER_BOXES]
    if read_parameters is None or [box for box, _ in found] != [wanted]:
        raise BadImage(f"The video must be encoded as {CODECS}.")
    start, end = found[0][1]
    try:
        return read_parameters(data[start : min(end, start + 16 * _PARAMETER_BYTES_MAX)], sizes)
    except IndexError:
        raise BadImage("The parameters of the video are incomplete.") from None


# -------------------------------------------------------------------------------------------------------- H.264, H.265


def _h264(parameters: bytes, sizes: set[Size]) -> Reader:
    if parameters[0] != 1:
        raise BadImage("The parameters of the video are of an unknown version.")
    position = 5
    for mask in (0x1F, 0xFF):  # parameters of the whole stream, then those of frames
        count = parameters[position] & mask
        position = _read_stated(parameters, position + 1, count, _h264_size, sizes)
    return _units_reader(1 + (parameters[4] & 3), _h264_size)


def _h265(parameters: bytes, sizes: set[Size]) -> Reader:
    if parameters[0] != 1:
        raise BadImage("The parameters of the video are of an unknown version.")
    position = 23
    for _ in range(parameters[22]):
        count = big_endian(parameters, position + 1, 2)
        position = _read_stated(parameters, position + 3, count, _h265_size, sizes)
    return _units_reader(1 + (parameters[21] & 3), _h265_size)


UnitSize = Callable[[bytes], Size | None]


def _read_stated(parameters: bytes, position: int, count: int, unit_size: UnitSize, sizes: set[Size]) -> int:
    """Read so many units, each behind its length in two bytes; return where they end."""
    for _ in range(count):
        length = big_endian(parameters, position, 2)
        start = position + 2
        position = start + length
        if not length or position > len(parameters):
            raise IndexError
        if size := unit_size(parameters[start:position]):
            sizes.add(size)
    return position


def _units_reader(length_bytes: int, unit_size: UnitSize) -> Reader:
    """A reader of samples that are units, each behind its length. What cannot be divided into units is refused: some
    decoders would look for units in another way.
    """

    def read(data: bytes, sample: Place, sizes: set[Size]) -> int:
        position, end = sample
        units = 0
        while position < end:
            start = position + length_bytes
            position = start + int.from_bytes(data[position:start], "big")
            if position > end or position == start or data[start] & 0x80:
                raise BadImage("A frame of the video is broken.")
            if size := unit_size(data[start : min(position, start + _PARAMETER_BYTES_MAX)]):
                sizes.add(size)
            units += 1
        return units

    return read


def _h264_size(unit: bytes) -> Size | None:
    """The size in a sequence parameter set; None for other units."""
    if unit[0] & 0x1F not in (7, 15):
        return None
    bits = _Bits(_without_escapes(unit[1:]))
    profile = bits.read(8)
    bits.read(16)
    bits.golomb()
    chroma = 1
    is_separate = 0
    if profile in _H264_PROFILES_WITH_CHROMA:
        chroma = bits.golomb()
        is_separate = bits.read(1) if chroma == 3 else 0
        bits.golomb()
        bits.golomb()
        bits.read(1)
        if bits.read(1):
            _skip_scaling_lists(bits, 12 if chroma == 3 else 8)
    bits.golomb()
    _skip_h264_order(bits)
    bits.golomb()
    bits.read(1)
    width = 16 * (bits.golomb() + 1)
    rows = bits.golomb() + 1
    fields = 2 - bits.read(1)
    if fields == 2:
        bits.read(1)
    bits.read(1)
    unit_width, unit_height = _CROP_UNITS.get(0 if is_separate else chroma, (1, 1))
    return _cropped_size(bits, (width, 16 * fields * rows), (unit_width, unit_height * fields))


def _skip_scaling_lists(bits: "_Bits", count: int) -> None:
    for index in range(count):
        if bits.read(1):
            last = following = 8
            for _ in range(16 if index < 6 else 64):
                if following:
                    following = (last + bits.signed_golomb()) % 256
                last = following or last


def _skip_h264_order(bits: "_Bits") -> None:
    """Skip how frames are ordered."""
    kind = bits.golomb()
    if kind == 0:
        bits.golomb()
    elif kind == 1:
        bits.read(1)
        bits.golomb()
        bits.golomb()
        for _ in range(min(bits.golomb(), 255)):
            bits.golomb()


def _h265_size(unit: bytes) -> Size | None:
    """The size in a sequence parameter set of the first layer; None for other units."""
    is_first_layer = big_endian(unit, 0, 2) >> 3 & 0x3F == 0
    if unit[0] >> 1 != 33 or not is_first_layer:
        return None
    bits = _Bits(_without_escapes(unit[2:]))
    bits.read(4)
    layers = bits.read(3)
    bits.read(1 + 88 + 8)  # the profile and the level of all layers
    present = [(bits.read(1), bits.read(1)) for _ in range(layers)]
    bits.read(2 * (8 - layers) if layers else 0)
    for has_profile, has_level in present:
        bits.read(88 * has_profile + 8 * has_level)
    bits.golomb()
    chroma = bits.golomb()
    if chroma == 3:
        bits.read(1)
    width = bits.golomb()
    height = bits.golomb()
    return _cropped_size(bits, (width, height), _CROP_UNITS.get(chroma, (1, 1)))


def _cropped_size(bits: "_Bits", coded: Size, unit: Size) -> Size:
    """The size without the edges that decoders cut off; they cut off nothing if nothing would be left."""
    if not bits.read(1):
        return coded
    left, right, top, bottom = (bits.golomb() for _ in range(4))
    width = coded[0] - unit[0] * (left + right)
    height = coded[1] - unit[1] * (top + bottom)
    return (width, height) if width > 0 and height > 0 else coded


def _without_escapes(unit: bytes) -> bytes:
    """The bytes of a unit without those that keep it from looking like the start of another."""
    return unit.replace(b"\x00\x00\x03", b"\x00\x00")


# ------------------------------------------------------------------------------------------------------------------ AV1


def _av1(parameters: bytes, sizes: set[Size]) -> Reader:
    if parameters[0] != 0x81:
        raise BadImage("The parameters of the video are of an unknown version.")
    _read_av1(parameters, (4, len(parameters)), sizes)
    return _read_av1


def _read_av1(data: bytes, sample: Place, sizes: set[Size]) -> int:
    position, end = sample
    units = 0
    while position < end:
        head = data[position]
        start = position + (2 if head & 4 else 1)
        length = end - start
        if head & 2:
            length, start = _leb128(data, start)
        position = start + length
        if head & 0x80 or position > end or length < 0:
            raise BadImage("A frame of the video is broken.")
        if head >> 3 & 15 == 1:
            sizes.add(_av1_size(data[start : min(position, start + _PARAMETER_BYTES_MAX)]))
        units += 1
    return units


def _leb128(data: bytes, position: int) -> tuple[int, int]:
    """A number in bytes of seven bits, and where it ends."""
    value = 0
    for index in range(8):
        byte = big_endian(data, position + index, 1)
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise BadImage("A frame of the video is broken.")


def _av1_size(header: bytes) -> Size:
    """The largest size of frames after a sequence header."""
    bits = _Bits(header)
    bits.read(4)
    if bits.read(1):
        bits.read(5)
    else:
        _skip_av1_operating_points(bits)
    width_bits = bits.read(4) + 1
    height_bits = bits.read(4) + 1
    return bits.read(width_bits) + 1, bits.read(height_bits) + 1


def _skip_av1_operating_points(bits: "_Bits") -> None:
    delay_bits = 0
    if bits.read(1):
        bits.read(64)
        if bits.read(1):
            bits.golomb()
        if bits.read(1):
            delay_bits = bits.read(5) + 1
            bits.read(42)
    has_delays = bits.read(1)
    for _ in range(bits.read(5) + 1):
        bits.read(12)
        if bits.read(5) > 7:
            bits.read(1)
        if delay_bits and bits.read(1):
            bits.read(2 * delay_bits + 1)
        if has_delays and bits.read(1):
            bits.read(4)


# --------------------------------------------------------------------------------------------------------------- ProRes


def _read_prores(data: bytes, sample: Place, sizes: set[Size]) -> int:
    """Read the frames of a sample; each has a header with its size."""
    position, end = sample
    units = 0
    while position < end:
        length = big_endian(data, position, 4)
        if length < 20 or position + length > end or data[position + 4 : position + 8] != b"icpf":
            raise BadImage("A frame of the video is broken.")
        sizes.add((big_endian(data, position + 16, 2), big_endian(data, position + 18, 2)))
        position += length
        units += 1
    return units


# ----------------------------------------------------------------------------------------------------------------- bits


class _Bits:
    """Reads numbers of some bits. Raises BadImage at the end."""

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def read(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise BadImage("The parameters of the video are incomplete.")
        return self._value >> self._left & (1 << count) - 1

    def golomb(self) -> int:
        """A number that follows as many zeros as it has bits but one."""
        zeros = 0
        while not self.read(1):
            zeros += 1
            if zeros > 32:
                raise BadImage("The parameters of the video are broken.")
        return (1 << zeros) - 1 + self.read(zeros)

    def signed_golomb(self) -> int:
        value = self.golomb()
        return (value + 1) // 2 if value % 2 else -(value // 2)


_H264_PROFILES_WITH_CHROMA = frozenset({44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 144, 244})
_CROP_UNITS = {1: (2, 2), 2: (2, 1)}  # by the form of chroma
_PRORES = frozenset({b"apch", b"apcn", b"apcs", b"apco", b"ap4h", b"ap4x"})
_CONFIGURATIONS: dict[bytes, tuple[bytes, Callable[[bytes, set[Size]], Reader]]] = {
    **dict.fromkeys((b"avc1", b"avc3"), (b"avcC", _h264)),
    **dict.fromkeys((b"hvc1", b"hev1"), (b"hvcC", _h265)),
    b"av01": (b"av1C", _av1),
}
