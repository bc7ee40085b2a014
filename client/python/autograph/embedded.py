"""Optimization without a server: runs the `autograph` program, which contains the service."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional, Tuple

from ._library import NATIVE
from ._inputs import write_folder
from ._model import Model, ModelLike
from .errors import Code, DeadlineExceeded, FailedPrecondition, InternalError, error_of
from .options import flags_of
from .report import Result, parse_report

PROGRAM_VARIABLE = "AUTOGRAPH_PROGRAM"
PYTHON_VARIABLE = "AUTOGRAPH_PYTHON"  # The Python whose ONNX Runtime the program measures.

# The program's exit codes (docs/cli.md) when it gives no status, because it ended before a job.
_EXIT_CODES = {
    2: Code.INVALID_ARGUMENT,
    3: Code.INVALID_ARGUMENT,
    4: Code.UNAVAILABLE,
    130: Code.CANCELLED,
}
_STOP_SECONDS = 10.0  # The time that the program has to end its work.


def find_program() -> str:
    """Returns the path of `autograph`: AUTOGRAPH_PROGRAM, else the wheel's, else the first on PATH.

    Raises:
        FailedPrecondition: it is not installed; the message says what to do.
    """
    named = os.environ.get(PROGRAM_VARIABLE, "")
    inside = str(NATIVE / "autograph")
    found = shutil.which(named or inside) or (None if named else shutil.which("autograph"))
    if found is None:
        where = f"{PROGRAM_VARIABLE}={named} is no program" if named else "it is not on PATH"
        raise FailedPrecondition(
            Code.FAILED_PRECONDITION,
            f"optimizing without a server needs the autograph program, and {where}: install a wheel "
            "that has it (scripts/build.sh, then scripts/wheel.sh) or AutoGraph itself (cmake "
            f"--install build), or set {PROGRAM_VARIABLE} to its path, or name a server "
            "(server='HOST:PORT' or AUTOGRAPH_SERVER)",
        )
    return found


def optimize_embedded(
    model: ModelLike,
    options: Mapping[str, Any],
    *,
    timeout: Optional[float],
    data: Optional[str],
) -> Result:
    """Runs ``autograph optimize`` on `model`; see `autograph.optimize`."""
    flags = flags_of(options)
    program = find_program()
    source = Model(model)
    with tempfile.TemporaryDirectory(prefix="autograph-") as folder:
        path = source.path
        if path is None:
            path = Path(folder, source.name)
            path.write_bytes(b"".join(source.chunks()))
        output, report = Path(folder, "output.onnx"), Path(folder, "report.json")
        words = [program, "optimize", str(path), "--output", str(output), "--report", str(report)]
        words += ["--json", *flags] + (["--data", data] if data else [])
        if options.get("inputs") is not None:
            words += ["--inputs", str(write_folder(options["inputs"], Path(folder, "inputs")))]
        code, out, err = _run(words, timeout)
        job = _job_of(out)
        if "result" not in job or not output.exists():
            raise _error_of(code, job, err)
        text = report.read_text(encoding="utf-8")
        return Result(
            job=str(job["name"]),
            model_name=source.name,
            onnx=b"".join(Model(output).chunks()),
            report=parse_report(text),
            report_json=text,
            cached=bool(job["result"].get("cache", {}).get("model_hit", False)),
            cancelled=job["state"] == "CANCELLED",
        )


def _run(words: List[str], timeout: Optional[float]) -> Tuple[int, str, str]:
    """Runs the program; returns its exit code and its output."""
    # The baseline is the ONNX Runtime of this Python.
    variables = {PYTHON_VARIABLE: sys.executable or "python3", **os.environ}
    # Its own process session: Ctrl-C reaches it once, from here, not also from the terminal.
    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=variables,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        raise DeadlineExceeded(
            Code.DEADLINE_EXCEEDED,
            f"no answer after {timeout} s; the search was stopped, its measurements are remembered",
        ) from None
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[str]) -> None:
    """Ends the program if it runs: by a signal to stop, then by a kill."""
    for how in (signal.SIGINT, signal.SIGKILL):
        if child.poll() is not None:
            break
        child.send_signal(how)
        try:
            child.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        except BaseException:  # A second Ctrl-C.
            child.kill()
            child.wait()
            raise
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _job_of(out: str) -> Mapping[str, Any]:
    """Returns the document that the program printed; empty when there is none."""
    try:
        doc = json.loads(out) if out.strip() else {}
    except ValueError as error:
        raise InternalError(
            Code.INTERNAL, f"autograph printed something else than JSON: {out[:200]!r}"
        ) from error
    return doc if isinstance(doc, dict) else {}


def _error_of(code: int, job: Mapping[str, Any], err: str) -> Exception:
    """Returns the error of a run that has no result."""
    name = str(job.get("name", ""))
    if "error" in job:
        return error_of(int(job["error"]["code"]), str(job["error"]["message"]), job=name)
    message = err.strip()
    if message.startswith("autograph: "):
        message = message[len("autograph: ") :]
    if code < 0:
        message = f"autograph was ended by {signal.Signals(-code).name}: {message}"
    return error_of(_EXIT_CODES.get(code, Code.INTERNAL), message or f"exit code {code}", job=name)
