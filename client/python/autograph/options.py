"""The options of a caller, and their conversion to a request of the service."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, TypedDict

from ._inputs import InputsLike
from ._wire import optimizer_pb2 as wire
from .errors import Code, InvalidArgument, Unimplemented


class Options(TypedDict, total=False):
    """Keywords of `optimize`, `submit` and `cached`. Missing ones get the service's defaults.

    All but `no_cache` and `remeasure` are part of the answer's key: other options, another search.

    Keys:
        device: "cpu", "cpu:CORES", "sim:NAME", "cuda:0". Default: the server's only device;
            without a server "cpu".
        shapes: sizes for inputs that the model leaves open: {"x": (1, 3, 224, 224)}.
        inputs: your own data, compared on first, and the first set is what is timed: a folder of
            NAME.npy or NAME.pb (docs/cli.md), {"x": array, ...}, or a list of such mappings.
        shape_sets: further sizes that get a plan of their own: [{"x": (8, 3, 224, 224)}].
        precision: "fp32"; "tf32", "fp16", "bf16" with a device that offers them.
        tolerance: largest max |a-b| / max |a| of any output; 1e-3, tf32 5e-3, fp16 1e-2, bf16 5e-2,
            also for models with values of these types.
        cold_cache: evict the device's caches before every run that is timed.
        nonfinite_strict: keep Inf and NaN exactly.
        rounds, expansions, graphs, candidates: what the search may spend, as counts.
        stale_graphs: graphs in a row without a smaller estimate that end a round; 500; 0: none do.
        cell_graphs: the same before the rounds, inside the parts that a model repeats; 0: not there.
        time_seconds: wall time of the search, a backstop.
        search: "ours", or for comparison "paper" (AutoGraph, AAAI 2023), "paper_without_dp" or
            "no_rewrites" (the best plan for the model's own graph). piece_nodes, region_nodes: the
            paper's sizes of pieces and of runs of them; 40, 120.
        alpha: weight of the critical path in the estimate; 0.25. beta: slack of backtracking; 1.1.
        streams: at most so many streams.
        batch: samples of one run, of a model that leaves its batch open.
        objective: "latency", or "throughput": samples a second, of batches of two or more.
        seed: of the search and its data; 1.
        without: names of rules to leave out.
        target: "device" (fastest there) or "portable" (only rewrites that ONNX Runtime gains by).
        keep_bytes: when no rewrite wins, the answer is the model's own bytes, without the plan.
        onnxruntime: the baseline: "auto" (ONNX Runtime, when it is installed beside a cpu
            worker), "off" (our untuned session instead), "require".
        no_cache: search again even when the answer is stored, from nothing that other searches
            found.
        remeasure: measure every group again, too.
    """

    device: str
    shapes: Mapping[str, Sequence[int]]
    inputs: InputsLike
    shape_sets: Sequence[Mapping[str, Sequence[int]]]
    precision: str
    tolerance: float
    cold_cache: bool
    nonfinite_strict: bool
    rounds: int
    expansions: int
    graphs: int
    stale_graphs: int
    cell_graphs: int
    candidates: int
    time_seconds: float
    search: str
    piece_nodes: int
    region_nodes: int
    alpha: float
    beta: float
    streams: int
    batch: int
    objective: str
    seed: int
    without: Sequence[str]
    target: str
    keep_bytes: bool
    onnxruntime: str
    no_cache: bool
    remeasure: bool


def check_names(options: Mapping[str, Any]) -> None:
    """Raises TypeError for a keyword that is not in `Options`."""
    for name in options:
        if name not in Options.__annotations__:
            known = ", ".join(Options.__annotations__)
            raise TypeError(f"there is no option {name!r}; the options are {known}")


def request_of(
    options: Mapping[str, Any], *, model_digest: str, model_name: str, request_id: str = ""
) -> Any:
    """Returns the ``autograph.v1.OptimizeRequest`` of `options`.

    Raises:
        TypeError: an option has no such name.
        InvalidArgument: a value has the wrong type or is out of the field's range.
    """
    check_names(options)
    request = wire.OptimizeRequest(
        request_id=request_id, model_digest=model_digest, model_name=model_name
    )
    for name, value in options.items():
        try:
            _set(request, name, value)
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidArgument(Code.INVALID_ARGUMENT, f"{name}: {value!r}: {error}") from error
    return request


def _set(request: Any, name: str, value: Any) -> None:
    if name == "inputs":
        return  # What is sent names their bytes.
    if name == "shapes":
        for tensor, sizes in value.items():
            request.shapes.add(input=tensor, dims=[int(size) for size in sizes])
    elif name == "shape_sets":
        for shapes in value:
            shape_set = request.shape_sets.add()
            for tensor, sizes in shapes.items():
                shape_set.shapes.add(input=tensor, dims=[int(size) for size in sizes])
    elif name == "without":
        request.disabled_rules.extend(_names(value))
    elif name in ("precision", "tolerance", "cold_cache", "nonfinite_strict"):
        setattr(request.policy, name, value)
    elif name in request.budget.DESCRIPTOR.fields_by_name:
        setattr(request.budget, name, value)
    elif name in ("target", "onnxruntime", "search", "objective"):
        setattr(request, name, _enum(request.DESCRIPTOR.fields_by_name[name], value))
    else:
        fields = {
            "streams": "streams_max",
            "no_cache": "skip_model_cache",
            "remeasure": "skip_group_cache",
        }
        setattr(request, fields.get(name, name), value)


def _enum(field: Any, word: Any) -> int:
    words: Dict[Any, int] = {v.name.lower(): v.number for v in field.enum_type.values if v.number}
    if word not in words:
        raise ValueError(f"is none of {', '.join(words)}")
    return words[word]


def _names(value: Any) -> List[str]:
    if isinstance(value, str):
        raise TypeError("expected a sequence of names, not one string")
    return list(value)


def _shape(tensor: str, sizes: Sequence[int]) -> str:
    return f"{tensor}={'x'.join(str(int(size)) for size in sizes)}"


def flags_of(options: Mapping[str, Any]) -> List[str]:
    """Returns the flags of ``autograph optimize`` that ask for `options`.

    Raises:
        TypeError: an option has no such name.
        Unimplemented: an option that only a server takes.
    """
    check_names(options)
    request_of(options, model_digest="", model_name="")  # Wrong values give the same error.
    flags: List[str] = []
    for name, value in options.items():
        if name == "inputs":
            continue  # A folder that the caller makes.
        if name == "shapes":
            for tensor, sizes in value.items():
                flags += ["--shape", _shape(tensor, sizes)]
        elif name == "shape_sets":
            for shapes in value:
                words = [_shape(tensor, sizes) for tensor, sizes in shapes.items()]
                flags += ["--shape-set", " ".join(words)]
        elif name == "without":
            for rule in value:
                flags += ["--without", rule]
        elif name in ("no_cache", "cold_cache", "keep_bytes"):
            flags += [f"--{name.replace('_', '-')}"] if value else []
        elif name == "search":
            flags += ["--search", value.replace("_", "-")]
        elif name == "onnxruntime":
            flags += ["--ort", str(value)]
        elif name == "time_seconds":
            flags += ["--budget", f"{value}s"]
        elif name in ("nonfinite_strict", "remeasure"):
            raise Unimplemented(
                Code.UNIMPLEMENTED, f"{name}: only a server takes this option; none was named"
            )
        else:
            flags += [f"--{name.replace('_', '-')}", str(value)]
    return flags
