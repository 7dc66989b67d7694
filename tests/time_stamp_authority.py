"""A time-stamp authority on loopback: openssl stamps what a gateway asks for."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.tcp_server import Connection, TcpServer, serve

_CONFIGURATION = """[tsa]
default_tsa = stamps
[stamps]
serial = {folder}/serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
"""


class Authority(NamedTuple):
    """Where it listens, and the certificate that vouches for it."""

    server: TcpServer
    root: str


def openssl(folder: Path, *words: str) -> bytes:
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, check=True).stdout


def _certificates(folder: Path) -> str:
    """Write a root, and a certificate with its key; return the root."""
    (folder / "openssl.cnf").write_text(_CONFIGURATION.format(folder=folder))
    (folder / "serial").write_text("01\n")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "openssl.cnf", "-days", "3650")
    openssl(folder, "req", "-x509", *key, "-subj", "/CN=Root of stamps", "-extensions", "root",
            "-keyout", "root.key", "-out", "root.pem")  # fmt: skip
    openssl(folder, "req", *key[:-2], "-subj", "/CN=Stamps", "-keyout", "key.pem", "-out", "request.pem")
    openssl(folder, "x509", "-req", "-in", "request.pem", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "2",
            "-extfile", "openssl.cnf", "-extensions", "leaf", "-days", "3650", "-out", "chain.pem")  # fmt: skip
    return (folder / "root.pem").read_text()


@asynccontextmanager
async def time_stamp_authority(folder: Path) -> AsyncIterator[Authority]:
    folder.mkdir()
    root = await asyncio.to_thread(_certificates, folder)
    reply = ("ts", "-reply", "-config", "openssl.cnf", "-queryfile", "question", "-signer", "chain.pem",
             "-inkey", "key.pem")  # fmt: skip

    async def answer(connection: Connection) -> None:
        while True:
            request = await connection.read_request()
            assert b"content-type: application/timestamp-query" in request.lower()
            (folder / "question").write_bytes(request.partition(b"\r\n\r\n")[2])
            stamped = await asyncio.to_thread(openssl, folder, *reply)
            await connection.respond(stamped, "content-type: application/timestamp-reply")

    async with serve(answer) as server:
        yield Authority(server, root)
