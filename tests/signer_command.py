"""A command that signs, as `provenance_signer` runs it: `python signer_command.py FOLDER [--signer-info]`.

The folder has chain.pem and key.pem; with a file `away` in it, the command fails.
"""

import sys
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def main(folder: Path, *, tells: bool) -> None:
    if (folder / "away").exists():
        sys.exit("the device is away")
    if tells:
        sys.stdout.write((folder / "chain.pem").read_text())
        return
    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read(), ec.ECDSA(hashes.SHA256())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), tells="--signer-info" in sys.argv)
