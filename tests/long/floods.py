"""Floods of HTTP/2 frames that make no call, or more of one than they look like.

Shown for each kind, sent on some connections at once, each of which comes back when it was ended:
how often that was, the coordinator's memory, and how long honest calls took that connect anew.
usage: floods.py [CONNECTIONS [SECONDS]]
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
import zlib
from typing import Callable, Dict, Iterator

from resets import PREFACE, frame, header, memory_mb, request
from served import PB, Calls, Service, grpc

MEMORY_MAX_MB = 250
ANSWERED_MIN = 0.5  # Of the honest calls, while the flood goes on.
SERVES_WITHIN = 2.0  # Seconds, once a flood is over.
HEADERS, PRIORITY, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 1, 2, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4


def length(size: int) -> bytes:
    """Returns the length of a header's value, as HPACK has it (RFC 7541, 5.1)."""
    if size < 127:
        return bytes([size])
    out, size = b"\x7f", size - 127
    while size >= 128:
        out, size = out + bytes([size % 128 + 128]), size // 128
    return out + bytes([size])


ASK = request("/autograph.v1.Optimizer/GetCapabilities")


def pings() -> Iterator[bytes]:
    """Pings, each of which wants an answer that nobody reads."""
    while True:
        yield frame(PING, 0, 0, b"12345678") * 500


def settings() -> Iterator[bytes]:
    """Settings, each of which wants an acknowledgement."""
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500


def window_updates() -> Iterator[bytes]:
    """Window updates of one byte."""
    while True:
        yield frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 500


def priorities() -> Iterator[bytes]:
    """Priorities of streams that never begin."""
    while True:
        for begin in range(1, 2**30, 1000):
            yield b"".join(frame(PRIORITY, 0, begin + 2 * i, b"\0\0\0\0\1") for i in range(500))


def header_blocks_without_end() -> Iterator[bytes]:
    """One call whose headers go on and on."""
    yield frame(HEADERS, 0, 1, ASK)
    line = b"\0\x03x-a" + length(4000) + b"v" * 4000
    while True:
        yield frame(CONTINUATION, 0, 1, line * 4)


def slow_header_blocks() -> Iterator[bytes]:
    """The same, ten bytes at a time."""
    yield frame(HEADERS, 0, 1, ASK)
    while True:
        time.sleep(0.1)
        yield frame(CONTINUATION, 0, 1, header(b"x", b"y"))


def repeated_headers() -> Iterator[bytes]:
    """Calls whose headers repeat a large one 16,000 times, a byte each."""
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, ASK + b"\x40\x03x-b" + length(3900) + b"w" * 3900)
    for stream in range(3, 2**31, 2):
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, ASK + bytes([0x80 | 62]) * 16000)


def empty_data() -> Iterator[bytes]:
    """Data frames of no bytes."""
    yield frame(HEADERS, END_HEADERS, 1, ASK)
    while True:
        yield frame(0, 0, 1, b"") * 500


def unknown_frames() -> Iterator[bytes]:
    """Frames of a kind that nobody knows."""
    while True:
        yield frame(99, 0, 0, b"z" * 1000) * 50


def compressed_zeros() -> Iterator[bytes]:
    """Messages that are a thousand times as large as what is sent."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = squeeze.compress(bytes(200 << 20)) + squeeze.flush()
    message = b"\1" + struct.pack(">I", len(data)) + data
    block = request("/autograph.v1.Optimizer/Optimize", header(b"grpc-encoding", b"gzip"))
    parts = [message[at : at + 16000] for at in range(0, len(message), 16000)]
    for stream in range(1, 2**31, 2):
        data_frames = [frame(0, END_STREAM if i + 1 == len(parts) else 0, stream, p) for i, p in enumerate(parts)]
        yield frame(HEADERS, END_HEADERS, stream, block) + b"".join(data_frames)
        time.sleep(0.2)


KINDS = [
    pings,
    settings,
    window_updates,
    priorities,
    header_blocks_without_end,
    slow_header_blocks,
    repeated_headers,
    empty_data,
    unknown_frames,
    compressed_zeros,
]


def send(address: str, kind: Callable[[], Iterator[bytes]], end: float, counts: Dict[str, int]) -> None:
    """Runs as a thread: floods, and connects again whenever its connection was ended."""
    host, port = address.rsplit(":", 1)
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, int(port)), timeout=2) as one:
                one.sendall(PREFACE)
                for data in kind():
                    if time.monotonic() > end:
                        return
                    one.sendall(data)
                    counts["sent"] += len(data)
        except OSError:
            counts["ended"] += 1
            time.sleep(0.02)


def ask(address: str, timeout: float) -> bool:
    """Connects and asks; tells whether an answer came in that time."""
    calls = Calls(address)
    try:
        calls.optimizer.GetCapabilities(
            PB["optimizer"].GetCapabilitiesRequest(), timeout=timeout, wait_for_ready=True
        )
        return True
    except grpc.RpcError:
        return False
    finally:
        calls.close()


def main() -> int:
    """Runs all of it."""
    connections = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4
    service = Service()
    assert service.coordinator is not None
    pid = service.coordinator.pid
    good = True
    for kind in KINDS:
        counts = {"sent": 0, "ended": 0}
        end = time.monotonic() + seconds
        arguments = (service.address, kind, end, counts)
        threads = [threading.Thread(target=send, args=arguments) for _ in range(connections)]
        for thread in threads:
            thread.start()
        most, answered, asked, longest = 0.0, 0, 0, 0.0
        while time.monotonic() < end:
            begin = time.monotonic()
            asked += 1
            answered += ask(service.address, 3)
            longest = max(longest, time.monotonic() - begin)
            most = max(most, memory_mb(pid, "VmRSS"))
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        begin = time.monotonic()
        serves = ask(service.address, SERVES_WITHIN)
        good = good and serves and most < MEMORY_MAX_MB and answered >= ANSWERED_MIN * asked
        print(
            f"{kind.__name__.replace('_', ' '):26s}{counts['sent'] / 1e6:8.0f} MB sent, ended {counts['ended']:4d} times; "
            f"{most:4.0f} MB; {answered} of {asked} honest calls answered, the longest {longest:.2f} s; "
            + (f"serves {time.monotonic() - begin:.2f} s after it" if serves else "DOES NOT SERVE AFTER IT"),
            flush=True,
        )
    good = good and service.coordinator.poll() is None
    service.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
