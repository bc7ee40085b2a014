"""A session: runs a model in this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import warnings as python_warnings
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import (
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from ._library import InputShapeC, OptionsC, TensorC, TensorInfoC, ValueC, check, library
from ._model import ModelLike
from .errors import Code, FailedPrecondition, InvalidArgument

_PLANS = {"carried": 0, "input": 1, "unfused": 2}

# ag_dtype (the numbers of ONNX's TensorProto): ONNX's name, and the NumPy type of its elements.
_DTYPES: Dict[int, Tuple[str, "np.dtype[Any]"]] = {
    1: ("float32", np.dtype(np.float32)),
    2: ("uint8", np.dtype(np.uint8)),
    3: ("int8", np.dtype(np.int8)),
    4: ("uint16", np.dtype(np.uint16)),
    5: ("int16", np.dtype(np.int16)),
    6: ("int32", np.dtype(np.int32)),
    7: ("int64", np.dtype(np.int64)),
    9: ("bool", np.dtype(np.bool_)),
    10: ("float16", np.dtype(np.float16)),
    11: ("float64", np.dtype(np.float64)),
    12: ("uint32", np.dtype(np.uint32)),
    13: ("uint64", np.dtype(np.uint64)),
    16: ("bfloat16", np.dtype(np.uint16)),
    8: ("string", np.dtype(object)),
    17: ("float8e4m3fn", np.dtype(np.uint8)),
    18: ("float8e4m3fnuz", np.dtype(np.uint8)),
    19: ("float8e5m2", np.dtype(np.uint8)),
    20: ("float8e5m2fnuz", np.dtype(np.uint8)),
    21: ("uint4", np.dtype(np.uint8)),
    22: ("int4", np.dtype(np.int8)),
    23: ("float4e2m1", np.dtype(np.uint8)),
}


# ag_kind.
_KINDS = ("tensor", "sequence", "optional", "optional sequence")

# An input or output: an array; of a sequence a list of arrays; of an optional also None.
Value = Union["NDArray[Any]", Sequence["NDArray[Any]"], None]

_NUMBERS = {name: number for number, (name, _) in _DTYPES.items()}


class SessionWarning(UserWarning):
    """A warning of the runtime about a model, e.g. that its plan was not used."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model.

    Attributes:
        name: as in the model.
        shape: all sizes, outermost first; () is a scalar; None: an output whose sizes are known
            after a run, or what is no tensor.
        dtype: of the arrays. NumPy has no bfloat16: such tensors are their bits as uint16; types of
            8 and 4 bits one byte an element. Strings are arrays of objects (str).
        onnx_type: the element type's name in ONNX ("float32", "bfloat16").
        open_axes: the axes of an input whose sizes the model leaves open: arrays may have others.
        kind: "tensor": an array; "sequence": a list of arrays; "optional": an array or None;
            "optional sequence": a list or None.
    """

    name: str
    shape: Optional[Tuple[int, ...]]
    dtype: "np.dtype[Any]"
    onnx_type: str = field(repr=False)
    open_axes: Tuple[int, ...] = ()
    kind: str = "tensor"

    def __str__(self) -> str:
        kind = "" if self.kind == "tensor" else f"{self.kind} of "
        sizes = "[...]" if self.shape is None else list(self.shape)
        return f"{self.name}: {kind}{self.dtype}{sizes}"

    def _has_open(self, array: Any) -> bool:
        """Whether the array has this shape up to sizes that the model leaves open."""
        return (
            isinstance(array, np.ndarray)
            and self.shape is not None
            and array.ndim == len(self.shape)
            and all(
                axis in self.open_axes or size == own
                for axis, (size, own) in enumerate(zip(array.shape, self.shape))
            )
        )


class Session:
    """A model on a device, ready to run: ``session(x)``, ``session.run({"x": x})``.

    Several threads may use one session; its runs take turns, without the GIL. Sessions are
    independent of each other. Memory and threads are freed by `close` (or ``with``, or the garbage
    collector). A session does not live through `os.fork`: make it in the child.

    The model is parsed in this process: give models that are not trusted to the service.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        device: str = "cpu",
        plan: str = "carried",
        streams: int = 0,
        shapes: Optional[Mapping[str, Sequence[int]]] = None,
        tune: bool = False,
        tuned_plans: Optional[str] = None,
    ) -> None:
        """Loads the model and makes it ready.

        Args:
            model: path or bytes of an ONNX model. A path is cheaper: its weights are mapped, not
                copied; the file must not be written to meanwhile (replacing it is fine).
            device: "cpu", "cpu:CORES", "sim:NAME", "cuda:0".
            plan: "carried": the plan in the model where it fits this machine, else one made here
                (with a `SessionWarning`); "input": made here; "unfused": every operator by itself.
            streams: the most streams, for a plan made here; 0: as the plan says; with `tune`
                as many as measure best.
            shapes: sizes for inputs that the model leaves open.
            tune: measure every group's kernels while loading (seconds to a minute), for a plan made
                here; plans that a model carries were measured when they were made.
            tuned_plans: folder that keeps tuned plans for later sessions that tune;
                None: the user's own (~/.cache/autograph/tuned-plans); "": none.

        Raises:
            NotFound: no such file. InvalidArgument: not a model, or an option is wrong.
            Unimplemented: an operator or device that this runtime lacks.
            FailedPrecondition: the library is not installed.
        """
        self._lock = threading.Lock()
        self._handle: Optional[int] = None
        self._library = library()
        self._process = os.getpid()
        options, kept = _options(device, plan, streams, shapes or {})
        options.tune = int(tune)
        options.tuned_plans = None if tuned_plans is None else os.fsencode(tuned_plans)
        self._handle = self._create(model, options)
        del kept  # `options` pointed to it until here.
        with self._freed_on_error():
            self.inputs = self._infos("input")
            self.outputs = self._infos("output")
            self.warnings = self._warnings()
            for text in self.warnings:
                python_warnings.warn(text, SessionWarning, stacklevel=2)
        self._plain = all([info.kind == "tensor" for info in self.inputs + self.outputs])
        self._input_pointers = (ctypes.c_void_p * len(self.inputs))()
        self._output_pointers = (ctypes.c_void_p * len(self.outputs))()

    inputs: Tuple[TensorInfo, ...]
    outputs: Tuple[TensorInfo, ...]
    warnings: Tuple[str, ...]

    @property
    def uses_carried_plan(self) -> bool:
        """True when the session runs the plan that the model carries."""
        with self._lock:
            return bool(self._library.ag_session_uses_carried_plan(self._open()))

    def __call__(self, *arrays: Any, **named: NDArray[Any]) -> Any:
        """Runs the model once: ``y = session(x)``.

        Args:
            arrays: the inputs in the order of `inputs`, or one mapping of all.
            named: inputs by name; with `arrays`, those that come after them.

        Returns:
            The output's array; of a model with several, a tuple in the order of `outputs`.

        Raises:
            As `run`.
        """
        inputs: Dict[str, Any] = dict(named)
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            inputs.update(arrays[0])
        elif len(arrays) > len(self.inputs):
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f"{len(arrays)} inputs given; the model has {', '.join(map(str, self.inputs))}",
            )
        else:
            for info, array in zip(self.inputs, arrays):
                if info.name in named:
                    raise InvalidArgument(Code.INVALID_ARGUMENT, f"input {info.name}: given twice")
                inputs[info.name] = array
        results = tuple(self.run(inputs).values())
        return results[0] if len(results) == 1 else results

    @overload
    def run(
        self,
        inputs: Mapping[str, Any],
        feeds: None = None,
        *,
        out: Optional[Mapping[str, NDArray[Any]]] = None,
    ) -> Dict[str, Any]: ...

    @overload
    def run(
        self,
        inputs: Optional[Sequence[str]],
        feeds: Mapping[str, Any],
        *,
        out: Optional[Mapping[str, NDArray[Any]]] = None,
    ) -> List[Any]: ...

    def run(
        self,
        inputs: Union[Mapping[str, Any], Sequence[str], None],
        feeds: Optional[Mapping[str, Any]] = None,
        *,
        out: Optional[Mapping[str, NDArray[Any]]] = None,
    ) -> Union[Dict[str, Any], List[Any]]:
        """Runs the model once: ``run(inputs)``, or ``run(None, inputs)`` as in ONNX Runtime.

        Args:
            inputs: an array for every input (of a sequence a list of arrays, of an optional maybe
                None: `TensorInfo.kind`), with exactly its dtype, and its shape up to sizes
                that the model leaves open (`TensorInfo.open_axes`): the first run of other sizes
                loads the model for them, and the last eight such sets stay. A C-contiguous array
                is used in place; another memory order is copied; another dtype or shape is an
                error, never converted.
            feeds: the inputs, where the first argument is a list of outputs' names or None.
            out: arrays for some or all outputs, written in place: exact dtype and shape,
                C-contiguous, writable, overlapping nothing. Others are made anew. Not for other
                sizes than the session's, nor for outputs whose sizes are known after a run.

        Returns:
            An array (of a sequence a list, of an optional maybe None) for every output by name;
            those of `out` are the same objects. With `feeds` a list: the named outputs, or all of
            them for None.

        Raises:
            InvalidArgument: an array is missing, unknown or does not fit; the message names it.
            FailedPrecondition: the session is closed. Unavailable: the device is lost.
            TypeError: neither form.
        """
        if isinstance(inputs, Mapping) and feeds is None:
            return self.run_timed(inputs, out=out)[0]
        if isinstance(inputs, (Mapping, str)) or feeds is None:
            raise TypeError("run takes inputs, or a list of outputs' names (None: all) and inputs")
        names = [info.name for info in self.outputs] if inputs is None else list(inputs)
        _check_names("output", self.outputs, dict.fromkeys(names), all_of_them=False)
        results = self.run_timed(feeds, out=out)[0]
        return [results[name] for name in names]

    def run_timed(
        self,
        inputs: Mapping[str, Any],
        *,
        out: Optional[Mapping[str, NDArray[Any]]] = None,
    ) -> Tuple[Dict[str, Any], int]:
        """Runs as `run`; also returns the device's nanoseconds (on "sim:NAME" an estimate)."""
        given = out or {}
        _check_names("input", self.inputs, inputs, all_of_them=True)
        _check_names("out", self.outputs, given, all_of_them=False)
        if not self._plain:
            values = [_value(info, inputs[info.name]) for info in self.inputs]
            return self._timed(values, given)
        sources = [_input(info, inputs[info.name]) for info in self.inputs]
        planned = all([array.shape == info.shape for array, info in zip(sources, self.inputs)])
        if not planned or any([info.shape is None for info in self.outputs]):
            return self._timed(sources, given)
        results = {
            info.name: (
                _output(info, given[info.name])
                if info.name in given
                else np.empty(info.shape or (), info.dtype)
            )
            for info in self.outputs
        }
        read = [_address(array) for array in sources]
        written = [_address(array) for array in results.values()]
        if given and not _stand_apart(
            [(begin, array.nbytes) for begin, array in zip(read, sources)],
            [(begin, array.nbytes) for begin, array in zip(written, results.values())],
        ):
            _refuse_shared(results, {i.name: a for i, a in zip(self.inputs, sources)})
        nanoseconds = ctypes.c_int64()
        with self._lock:
            handle = self._open()
            self._input_pointers[:] = [*read]
            self._output_pointers[:] = [*written]
            check(
                self._library.ag_session_run_timed(
                    handle, self._input_pointers, self._output_pointers, nanoseconds
                )
            )
        return results, nanoseconds.value

    def _timed(
        self, values: Sequence[Value], out: Mapping[str, NDArray[Any]]
    ) -> Tuple[Dict[str, Any], int]:
        if out:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT, "out: the outputs' sizes are known after the run"
            )
        begin = time.perf_counter_ns()
        return self._run_any(values), time.perf_counter_ns() - begin

    def _run_any(self, given: Sequence[Value]) -> Dict[str, Any]:
        """Runs on values of any kind, and of other sizes than the session's."""
        values = (ValueC * len(given))()
        kept: List[Any] = []
        for value, info, one in zip(values, self.inputs, given):
            arrays = [one] if isinstance(one, np.ndarray) else list(one or ())
            kept.append((TensorC * len(arrays))())
            value.is_none = int(one is None)
            value.count = len(arrays)
            value.tensors = kept[-1]
            for tensor, array in zip(kept[-1], arrays):
                kept.append(_fill(tensor, info, array))
        results = ctypes.c_void_p()
        with self._lock:
            check(
                self._library.ag_session_run_values(self._open(), values, len(values), results)
            )
        try:
            return {
                info.name: _result(info, self._library.ag_results_value(results, i).contents)
                for i, info in enumerate(self.outputs)
            }
        finally:
            self._library.ag_results_destroy(results)

    def close(self) -> None:
        """Frees the model after the run in hand. Closing twice is fine."""
        with self._lock:
            handle, self._handle = self._handle, None
            # After a fork the device's threads do not exist in this process.
            if handle is not None and self._process == os.getpid():
                self._library.ag_session_destroy(handle)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, infos)) for infos in (self.inputs, self.outputs))
        return f"<autograph.Session ({inputs}) -> ({outputs})>"

    @contextlib.contextmanager
    def _freed_on_error(self) -> Any:
        try:
            yield
        except BaseException:  # E.g. a warning that the user made an error.
            self.close()
            raise

    def _create(self, model: ModelLike, options: OptionsC) -> int:
        handle = ctypes.c_void_p()
        if isinstance(model, (str, os.PathLike)):
            path = os.fsencode(model)
            check(self._library.ag_session_create_from_file(path, options, handle))
        elif isinstance(model, (bytes, bytearray, memoryview)):
            view = np.frombuffer(model, np.uint8)
            check(self._library.ag_session_create(view.ctypes.data, view.size, options, handle))
        else:
            raise TypeError(f"a model is a path or bytes, not {type(model).__name__}")
        assert handle.value is not None, "AG_OK gives a session"
        return handle.value

    def _open(self) -> int:
        if self._handle is None:
            raise FailedPrecondition(Code.FAILED_PRECONDITION, "this session was closed")
        if self._process != os.getpid():
            raise FailedPrecondition(
                Code.FAILED_PRECONDITION,
                "this session was made before a fork; make it in the process that uses it",
            )
        return self._handle

    def _infos(self, what: str) -> Tuple[TensorInfo, ...]:
        count = getattr(self._library, f"ag_session_{what}_count")(self._handle)
        get = getattr(self._library, f"ag_session_{what}")
        kind = getattr(self._library, f"ag_session_{what}_kind")
        found = tuple(
            replace(_info(get(self._handle, i).contents), kind=_KINDS[kind(self._handle, i)])
            for i in range(count)
        )
        if what == "output":
            return found
        is_open = self._library.ag_session_input_is_open
        return tuple(
            replace(
                info,
                open_axes=tuple(
                    axis
                    for axis in range(len(info.shape or ()))
                    if is_open(self._handle, i, axis)
                ),
            )
            for i, info in enumerate(found)
        )

    def _warnings(self) -> Tuple[str, ...]:
        count = self._library.ag_session_warning_count(self._handle)
        texts = (self._library.ag_session_warning(self._handle, i) for i in range(count))
        return tuple(text.decode("utf-8", "replace") for text in texts)


def _options(
    device: str, plan: str, streams: int, shapes: Mapping[str, Sequence[int]]
) -> Tuple[OptionsC, List[Any]]:
    """Returns the C options and the objects that they point to."""
    if plan not in _PLANS:
        raise InvalidArgument(
            Code.INVALID_ARGUMENT, f"plan: {plan!r} is none of {', '.join(_PLANS)}"
        )
    rows = (InputShapeC * len(shapes))()
    kept: List[Any] = [rows]
    for row, (name, sizes) in zip(rows, shapes.items()):
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        kept.append(numbers)
        row.input = name.encode()
        row.rank = len(sizes)
        row.shape = numbers
    options = OptionsC(
        size=ctypes.sizeof(OptionsC),
        device=device.encode(),
        plan=_PLANS[plan],
        streams=streams,
        shapes=rows,
        shapes_count=len(shapes),
    )
    return options, kept


def _info(found: TensorInfoC) -> TensorInfo:
    onnx_type, dtype = _DTYPES[found.dtype]
    shape = None if found.rank < 0 else tuple(int(found.shape[i]) for i in range(found.rank))
    return TensorInfo(found.name.decode("utf-8", "replace"), shape, dtype, onnx_type)


def _fill(tensor: TensorC, info: TensorInfo, array: NDArray[Any]) -> Any:
    """Makes the C tensor a view of the array; returns what it points to besides."""
    sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
    texts = _pointers(info, array) if info.onnx_type == "string" else None
    tensor.dtype = _NUMBERS[info.onnx_type]
    tensor.rank = array.ndim
    tensor.shape = sizes
    tensor.data = _address(array) if texts is None else ctypes.addressof(texts)
    return sizes, texts


def _result(info: TensorInfo, found: ValueC) -> Any:
    """Returns a copy of the library's value: an array, a list of arrays, or None."""
    if found.is_none:
        return None
    arrays = [_copied(found.tensors[i]) for i in range(found.count)]
    return arrays[0] if info.kind in ("tensor", "optional") else arrays


def _copied(found: TensorC) -> NDArray[Any]:
    """Returns an array with a copy of the library's tensor."""
    _, dtype = _DTYPES[found.dtype]
    array = np.empty(tuple(int(found.shape[i]) for i in range(found.rank)), dtype)
    if dtype == np.dtype(object):
        texts = (ctypes.c_char_p * array.size).from_address(found.data or 0) if array.size else ()
        array.ravel()[:] = [(text or b"").decode("utf-8", "replace") for text in texts]
    elif array.nbytes > 0:
        ctypes.memmove(_address(array), found.data, array.nbytes)
    return array


def _check_names(
    what: str, infos: Sequence[TensorInfo], given: Mapping[str, Any], *, all_of_them: bool
) -> None:
    if len(given) == len(infos) and all([info.name in given for info in infos]):
        return
    names = [info.name for info in infos]
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given] if all_of_them else []
    if unknown or missing:
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f"{what}: {_list('missing', missing)}{_list('unknown', unknown)}"
            f"the model has {', '.join(map(str, infos))}",
        )


def _list(title: str, names: Iterable[str]) -> str:
    text = ", ".join(names)
    return f"{title} {text}; " if text else ""


def _check_array(what: str, info: TensorInfo, array: Any) -> None:
    """Raises InvalidArgument unless `array` has the dtype (byte order and all) and the shape."""
    if not isinstance(array, np.ndarray):
        found = f"a {type(array).__name__}; pass a numpy.ndarray"
    elif array.dtype != info.dtype or array.shape != info.shape:
        found = f"{array.dtype}{list(array.shape)}"
        if array.shape == info.shape:
            found += f"; convert it: .astype('{info.dtype}')"
    else:
        return
    raise InvalidArgument(
        Code.INVALID_ARGUMENT,
        f"{what} {info.name}: expected {info.dtype}{list(info.shape or ())}, got {found}",
    )


def _pointers(info: TensorInfo, array: NDArray[Any]) -> Any:
    """Returns the strings of an array as C has them."""
    texts = [text.encode() if isinstance(text, str) else text for text in array.ravel().tolist()]
    for text in texts:
        if not isinstance(text, bytes) or b"\0" in text:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f"input {info.name}: {text!r} is not a string without a NUL character",
            )
    return (ctypes.c_char_p * len(texts))(*texts)


def _fits(info: TensorInfo, array: Any) -> bool:
    """Whether C can read the array as it is, with the planned sizes. The common case, cheap."""
    if type(array) is not np.ndarray or array.shape != info.shape or array.dtype != info.dtype:
        return False
    flags = array.flags
    return flags.c_contiguous and flags.aligned and info.onnx_type != "string"


def _input(info: TensorInfo, array: Any) -> NDArray[Any]:
    if _fits(info, array):
        result: NDArray[Any] = array
        return result
    if info.onnx_type == "string" and info._has_open(array) and array.dtype.kind in "UO":
        return np.require(array.astype(object), requirements=["C"])
    if not info._has_open(array) or array.dtype != info.dtype:
        _check_array("input", info, array)
    return np.require(array, requirements=["C", "A"])


def _item(info: TensorInfo, array: Any) -> NDArray[Any]:
    """Returns the array as C reads it: of any shape, of the element type of a sequence."""
    of_strings = info.onnx_type == "string"
    if isinstance(array, np.ndarray) and of_strings and array.dtype.kind in "UO":
        return np.require(array.astype(object), requirements=["C"])
    if not isinstance(array, np.ndarray) or array.dtype != info.dtype:
        found = str(array.dtype) if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f"input {info.name}: expected {info.kind} of {info.dtype}, got one with {found}",
        )
    return np.require(array, requirements=["C", "A"])


def _value(info: TensorInfo, given: Any) -> Value:
    if info.kind == "tensor":
        return _input(info, given)
    if given is None and info.kind.startswith("optional"):
        return None
    if info.kind == "optional":
        return _item(info, given)
    if not isinstance(given, (list, tuple)):
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f"input {info.name}: expected a list of {info.dtype} arrays, "
            f"got a {type(given).__name__}",
        )
    return [_item(info, array) for array in given]


def _output(info: TensorInfo, array: Any) -> NDArray[Any]:
    if not _fits(info, array):
        _check_array("out", info, array)
    flags = array.flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f"out {info.name}: must be C-contiguous, aligned and writable to be written in place",
        )
    result: NDArray[Any] = array
    return result


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _stand_apart(inputs: List[Tuple[int, int]], outputs: List[Tuple[int, int]]) -> bool:
    """Whether no output shares a byte with another array, by addresses and sizes in bytes.

    One sweep over the sorted ranges: models have hundreds of inputs and outputs.
    """
    if len(inputs) == 1 and len(outputs) == 1:
        (a, a_size), (b, b_size) = inputs[0], outputs[0]
        return a + a_size <= b or b + b_size <= a or a_size == 0 or b_size == 0
    spans = [(begin, size, False) for begin, size in inputs if size > 0]
    spans += [(begin, size, True) for begin, size in outputs if size > 0]
    end = end_of_outputs = 0  # Of the ranges so far.
    for begin, size, is_output in sorted(spans):
        if begin < (end if is_output else end_of_outputs):
            return False
        end = max(end, begin + size)
        if is_output:
            end_of_outputs = max(end_of_outputs, begin + size)
    return True


def _refuse_shared(
    results: Mapping[str, NDArray[Any]], sources: Mapping[str, NDArray[Any]]
) -> None:
    """Raises InvalidArgument that names the output which would be written over another array."""
    arrays = [(f"input {name}", array) for name, array in sources.items()]
    for name, array in results.items():
        for other, taken in arrays:
            if np.may_share_memory(array, taken):
                raise InvalidArgument(
                    Code.INVALID_ARGUMENT, f"out {name}: shares memory with {other}"
                )
        arrays.append((f"out {name}", array))
