"""Large values whose JSON is hard to decode in small steps."""

from typing import Any

from penstock.long_bodies.long_texts import STEP_BYTES

MIB = 1024**2


def nested() -> Any:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep, {"a": deep if len(str(deep)) < 100 else 1}]
    return deep


LARGE: dict[str, Any] = {
    "an image in base64": {"image": "data:image/png;base64," + "A" * (6 * MIB), "prompt": "é"},
    "many messages": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "é" * 50}] * 20, "n": [1, 2.5, None]}] * 500,
        "": {"deep": nested(), "empty": [{}, [], ""]},
    },
    "long messages": [{"role": "user", "content": f'{number} "é\\\n' * 9000} for number in range(20)],
    "many texts that are not long": [f"{number}é" + "a" * 100_000 for number in range(60)],
    "short texts with escapes": ['\\"\n\t\0é', '"', "\\", "\\\\"] * 9000,
    "line ends": "\n" * MIB,
    "quotes and backslashes": '\\"' * (MIB // 4),
    "letters beside the ends of steps": [
        "a" * (STEP_BYTES - offset) + "é😀\\\n" * 9 + "b" * STEP_BYTES for offset in range(-2, 20)
    ],
    "letters of every width": "é😀a" * 100_000,
    "texts that look like marks": {"a": "a" * STEP_BYTES, "b": ["0", "1", " 0"]},
}
