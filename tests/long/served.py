"""What the soaks of the service share: processes of their own, and calls made of the protos alone."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("AUTOGRAPH_BUILD", str(ROOT / "build"))
sys.path.insert(0, str(ROOT / "client" / "python" / "tests"))

import grpc  # noqa: E402
from grpc_tools import protoc  # noqa: E402
from service import Service, eventually, stop  # noqa: E402,F401

_GENERATED = tempfile.TemporaryDirectory(prefix="autograph-protos-")


def _generate() -> Dict[str, Any]:
    folder = ROOT / "proto"
    names = sorted(path.stem for path in (folder / "autograph" / "v1").glob("*.proto"))
    out = _GENERATED.name
    words = ["protoc", f"-I{folder}", f"--python_out={out}", f"--grpc_python_out={out}"]
    words += [f"autograph/v1/{name}.proto" for name in names]
    if protoc.main(words) != 0:
        raise SystemExit("protoc failed")
    sys.path.insert(0, out)
    modules = {}
    for name in names:
        modules[name] = importlib.import_module(f"autograph.v1.{name}_pb2")
        modules[f"{name}_grpc"] = importlib.import_module(f"autograph.v1.{name}_pb2_grpc")
    return modules


PB = _generate()
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELLED"}


class Calls:
    """The stubs of one connection."""

    def __init__(self, address: str) -> None:
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.initial_reconnect_backoff_ms", 100),
        ]
        self.channel = grpc.insecure_channel(address, options=options)
        self.optimizer = PB["optimizer_grpc"].OptimizerStub(self.channel)
        self.blobs = PB["blobs_grpc"].BlobsStub(self.channel)
        self.cache = PB["cache_grpc"].CacheStub(self.channel)
        self.workers = PB["worker_grpc"].WorkersStub(self.channel)

    def upload(self, digest: str, data: bytes, timeout: float = 30) -> None:
        """Sends a blob."""
        chunk = 1 << 20

        def messages() -> Any:
            for begin in range(0, max(len(data), 1), chunk):
                yield PB["blobs"].UploadRequest(
                    digest=digest if begin == 0 else "",
                    size_bytes=len(data) if begin == 0 else 0,
                    offset=begin,
                    data=data[begin : begin + chunk],
                    last=begin + chunk >= len(data),
                )

        self.blobs.Upload(messages(), timeout=timeout)

    def close(self) -> None:
        """Closes the connection."""
        self.channel.close()


def request_of(model_digest: str, seed: int, **fields: Any) -> Any:
    """Returns a small request on the simulated device; another seed is another job."""
    return PB["optimizer"].OptimizeRequest(
        model_digest=model_digest,
        device="sim:small",
        seed=seed,
        budget=PB["optimizer"].SearchBudget(rounds=1, graphs=20, expansions=5, candidates=1),
        **fields,
    )
