"""The one call that most users need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional, Union

from . import _rpc
from ._model import ModelLike
from .client import Client, OnProgress
from .embedded import optimize_embedded
from .report import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import Options


def optimize(
    model: ModelLike,
    *,
    server: Optional[str] = None,
    timeout: Optional[float] = None,
    on_progress: Optional[OnProgress] = None,
    data: Union[str, os.PathLike[str], None] = None,
    **options: Unpack[Options],
) -> Result:
    """Finds a faster model that computes the same, and waits for it.

    With a server (`server`, else the variable AUTOGRAPH_SERVER) the job runs there. Without one the
    `autograph` program runs the whole service on this machine: the wheel's own or an installed one.
    The baseline is ONNX Runtime where this Python (or the one that AUTOGRAPH_PYTHON names)
    has it, else our untuned session.

    Args:
        model: path or bytes of an ONNX model.
        server: HOST:PORT or unix:PATH.
        timeout: seconds to wait; None: as long as it takes. At a server the job goes on; without
            one the search stops, and its measurements are kept for the next call.
        on_progress: called with a `Job` for every change. A server only.
        data: folder of the embedded service's store; default: that of the program. Without a
            server only.
        options: see `Options`: device="cpu", shapes={"x": (1, 3, 224, 224)}, rounds=8, ...

    Returns:
        The answer: verdict, speedup, bytes and report. When no rewrite wins it is the model's own
        bytes with the best measured plan behind them.

    Raises:
        AutoGraphError: one subclass for each thing to do next; see `autograph.errors`.
        KeyboardInterrupt: Ctrl-C. A job at a server goes on, and the message has its name; without
            a server the search stops, and its measurements are kept.
    """
    address = server or os.environ.get(_rpc.SERVER_VARIABLE, "")
    if address:
        with Client(address) as client:
            return client.optimize(model, timeout=timeout, on_progress=on_progress, **options)
    folder = None if data is None else os.fspath(data)
    return optimize_embedded(model, options, timeout=timeout, data=folder)
