"""Our outputs beside PyTorch, JAX and ONNX Runtime: one process, interleaved, same graph and weights.

    bench/peers/peers.py [--device cuda] [--precision tf32] [--ours "one stream=A.onnx"]... MODEL.onnx

MODEL is what a user has: every peer gets it (onnx_to_torch.py, onnx_to_jax.py). --ours names what
`autograph optimize --precision P` made of it; it must carry a plan of that precision. Sides of --sides:
  eager           PyTorch, operator by operator
  graph           PyTorch in one sequential CUDA graph
  compile         torch.compile(mode="max-autotune"), as people run it
  compile-tuned   the same with freezing, cudnn.benchmark, channels-last and dependent launches
  jax             jax.jit, weights as constants
  ort             ONNX Runtime: CUDAExecutionProvider, or its CPU's with --device cpu
A side that cannot be (no GPU, not installed, an operator it lacks) is a row of dashes with the reason.
Inputs and outputs of the peers stay on the device; ours are the device's own time (run_timed). Every block runs
each side once to settle and then for about 100 ms; the order alternates. A ratio is the median over the blocks of
the peer's time over that of the first of ours (else of `eager`), with its 95 % bootstrap interval: above 1 ours is faster.
Each row has its distance from the floor (floor.py). Precision: fp32 is without TF32, fp16 has model and inputs in
half; both sides' flags are asserted. Exits 1 when a side's outputs differ by more than --tolerance of the
largest value (0: 1e-3, tf32 2e-2, fp16 5e-2), 77 without torch.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BLOCK_SECONDS = 0.1
SETTLE_SECONDS = 0.005
TOLERANCE = {"fp32": 1e-3, "tf32": 2e-2, "fp16": 5e-2}

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the GPU for itself.
try:
    import numpy as np
    import torch
    from common import bootstrap, largest_difference, our_session
    from onnx.helper import tensor_dtype_to_np_dtype  # onnx 1.14
    from floor import floor_ms, measure_machine, set_precision, work_of
    from onnx_to_torch import load
except ImportError as error:
    print(f"peers.py: {error}", file=sys.stderr)
    sys.exit(77)


class Absent(Exception):
    """A side that cannot be here, and why."""


class Ours:
    def __init__(self, path, args, feeds):
        binary = os.environ.get("AUTOGRAPH", os.path.join(ROOT, "build", "autograph"))
        shown = subprocess.run([binary, "plan", "show", path, "--json", "--device", args.our_device], text=True,
                               capture_output=True)
        if shown.returncode:
            raise Absent(shown.stderr.strip())
        plan = json.loads(shown.stdout)
        if not plan["carried"] and args.precision != "fp32":
            raise Absent(f"{path} carries no plan for {args.our_device}: it would run in fp32")
        if plan["precision"] != args.precision:
            raise Absent(f"the plan of {path} is of {plan['precision']}")
        self.session = our_session()(path, device=args.our_device)
        self.feeds = {i.name: feeds[i.name] for i in self.session.inputs}
        self.outputs = {o.name: np.zeros(o.shape, o.dtype) for o in self.session.outputs}

    def result(self):
        return [np.array(v) for v in self.session.run(self.feeds, out=self.outputs).values()]

    def seconds(self, count):
        return sum(self.session.run_timed(self.feeds, out=self.outputs)[1] for _ in range(count)) / count * 1e-9


class Torch:
    """PyTorch in one of its modes."""

    def __init__(self, path, args, feeds, mode):
        self.cuda = args.device == "cuda"
        set_precision(torch, args.precision)
        half = args.precision == "fp16"
        if half and not self.cuda:
            raise Absent("fp16 is measured on a GPU only")
        self.tuned = tuned = mode == "compile-tuned"
        self.set_globals()
        module, self.inputs = load(path, feeds, args.device, half, channels_last=tuned)
        assert not half or all(x.dtype != torch.float32 for x in [*module.buffers(), *self.inputs]), "not all is half"
        self.call = lambda: module(*self.inputs)
        if mode == "graph":
            self.call = self.capture()
        elif mode.startswith("compile"):
            self.call = self.compile(module, tuned)

    def set_globals(self):
        """What all sides of one process share; set anew before each runs."""
        torch.backends.cudnn.benchmark = self.tuned

    def capture(self):
        if not self.cuda:
            raise Absent("no CUDA graphs without a GPU")
        run, side = self.call, torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(side):
            for _ in range(3):
                run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph):
            outputs = run()

        def replay():
            graph.replay()
            return outputs
        return replay

    def compile(self, module, tuned):
        if not hasattr(torch, "compile"):
            raise Absent(f"torch {torch.__version__} has no torch.compile")
        from torch._inductor import config
        config.freezing = tuned
        if hasattr(config.triton, "enable_pdl"):  # Kernels that start while the one before ends; off by default.
            config.triton.enable_pdl = tuned
        compiled = torch.compile(module, mode="max-autotune")
        with torch.inference_mode():
            for _ in range(3):
                compiled(*self.inputs)
        return lambda: compiled(*self.inputs)

    def result(self):
        self.set_globals()
        with torch.inference_mode():
            return [v.float().cpu().numpy() if v.is_floating_point() else v.cpu().numpy() for v in self.call()]

    def seconds(self, count):
        self.set_globals()
        with torch.inference_mode():
            if not self.cuda:
                begin = time.perf_counter()
                for _ in range(count):
                    self.call()
                return (time.perf_counter() - begin) / count
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(count):
                self.call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / 1e3 / count


class Jax:
    def __init__(self, path, args, feeds):
        try:
            import jax
            from onnx_to_jax import OnnxFunction
        except ImportError as error:
            raise Absent(str(error)) from None
        if (jax.default_backend() == "gpu") != (args.device == "cuda"):
            raise Absent(f"jax runs on {jax.default_backend()}")
        if args.precision == "fp16" and args.device != "cuda":
            raise Absent("fp16 is measured on a GPU only")
        jax.config.update("jax_default_matmul_precision", {"fp32": "highest", "tf32": "tensorfloat32"}.get(
            args.precision, "default"))
        function = OnnxFunction(path, args.precision == "fp16")
        given = [feeds[n] for n in function.input_names]
        if args.precision == "fp16":
            given = [x.astype(np.float16) if x.dtype == np.float32 else x for x in given]
        self.inputs = [jax.device_put(x) for x in given]
        self.run, self.wait = jax.jit(lambda *xs: function(*xs)), jax.block_until_ready

    def result(self):
        return [np.asarray(v).astype(np.float32) if v.dtype == np.float16 else np.asarray(v)
                for v in self.run(*self.inputs)]

    def seconds(self, count):
        begin = time.perf_counter()
        for _ in range(count):
            last = self.run(*self.inputs)
        self.wait(last)
        return (time.perf_counter() - begin) / count


class Ort:
    def __init__(self, path, args, feeds):
        try:
            import onnxruntime
        except ImportError as error:
            raise Absent(str(error)) from None
        if args.precision == "fp16":
            raise Absent("ONNX Runtime gets the model as it is: fp32")
        provider = "CUDAExecutionProvider" if args.device == "cuda" else "CPUExecutionProvider"
        if provider not in onnxruntime.get_available_providers():
            raise Absent(f"ONNX Runtime {onnxruntime.__version__} has no {provider}")
        options = {"use_tf32": int(args.precision == "tf32")} if args.device == "cuda" else {}
        self.session = onnxruntime.InferenceSession(path, providers=[(provider, options)])
        if self.session.get_providers()[0] != provider:
            raise Absent(f"{provider} does not load here")
        self.binding = self.session.io_binding()
        for i in self.session.get_inputs():
            self.binding.bind_ortvalue_input(
                i.name, onnxruntime.OrtValue.ortvalue_from_numpy(feeds[i.name], args.device, 0))
        for o in self.session.get_outputs():
            self.binding.bind_output(o.name, args.device)

    def result(self):
        self.session.run_with_iobinding(self.binding)
        return self.binding.copy_outputs_to_cpu()

    def seconds(self, count):
        begin = time.perf_counter()
        for _ in range(count):
            self.session.run_with_iobinding(self.binding)
        return (time.perf_counter() - begin) / count


def make_feeds(path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    rng, feeds = np.random.default_rng(1), {}
    for i in graph.input:
        if i.name in weights:
            continue
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if any(s < 1 for s in shape):
            sys.exit(f'{path}: input "{i.name}" has open sizes')
        dtype = tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        feeds[i.name] = (rng.standard_normal(shape).astype(np.float32) if dtype == np.float32
                         else rng.integers(0, 2, shape).astype(dtype))
    return feeds


def make_sides(args, feeds, expected):
    """The sides that can be, and the reasons of those that cannot."""
    makers = {f"ours: {name}": (lambda p=path: Ours(p, args, feeds)) for name, path in args.ours}
    for name in args.sides.split(","):
        kinds = {"jax": lambda: Jax(args.model, args, feeds), "ort": lambda: Ort(args.model, args, feeds)}
        makers[name] = kinds.get(name, lambda n=name: Torch(args.model, args, feeds, n))
    sides, absent = {}, {}
    for name, make in makers.items():
        try:
            side = make()
            side.first = side.result()
            side.difference = largest_difference(side.first, expected)
            sides[name] = side
        except Exception as error:  # A peer that breaks is a row of dashes, whatever broke it.
            text = " ".join(f"{type(error).__name__}: {error}".replace("Absent: ", "").split())
            absent[name] = text[:300]
    return sides, absent


def measure(sides, blocks):
    counts, times = {}, {name: [] for name in sides}
    for name, side in sides.items():
        once = max(side.seconds(3), 1e-7)
        counts[name] = max(3, min(20000, int(BLOCK_SECONDS / once)))
    for block in range(blocks):
        for name in list(sides) if block % 2 == 0 else list(reversed(sides)):
            time.sleep(SETTLE_SECONDS)
            sides[name].seconds(1)
            times[name].append(sides[name].seconds(counts[name]))
    return times


def reference(args, feeds):
    """The model in fp32 on the CPU, which every side is compared with."""
    set_precision(torch, "fp32")
    module, inputs = load(args.model, feeds)
    with torch.inference_mode():
        return [v.numpy() for v in module(*inputs)]


def compare(args):
    feeds = make_feeds(args.model)
    expected = reference(args, feeds)
    sides, absent = make_sides(args, feeds, expected)
    base = next(iter([n for n in sides if n.startswith("ours")] + [n for n in sides if n == "eager"]), None)
    times = measure(sides, args.blocks)
    machine = json.load(open(args.machine)) if args.machine else measure_machine(
        torch, args.device, [args.precision], 1.0 if args.device == "cuda" else 0.25)
    work = work_of(args.model, 2 if args.precision == "fp16" else 4)
    floor, limit = floor_ms(work, machine, args.precision)
    result = {"model": os.path.basename(args.model), "device": args.device, "precision": args.precision,
              "torch": torch.__version__, "blocks": args.blocks, "base": base, "machine": machine,
              "floor_ms": floor, "floor_is": limit, "work": work._asdict(), "rows": {}}
    if args.device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
    for name, side in sides.items():
        ratios = [t / b for t, b in zip(times[name], times[base])] if base else [1.0]
        low, high = bootstrap(ratios)
        median = statistics.median(times[name]) * 1e3
        result["rows"][name] = {"median_ms": median, "ratio": statistics.median(ratios), "low": low, "high": high,
                                "over_floor": median / floor, "difference": side.difference}
    for name, reason in absent.items():
        result["rows"][name] = {"reason": reason}
    return result


def table(result):
    lines = [f"{result['model']} {result['precision']} on {result.get('gpu', result['device'])}: floor "
             f"{result['floor_ms']:.4f} ms ({result['floor_is']}); ratios over {result['base']}"]
    for name, row in result["rows"].items():
        if "reason" in row:
            lines.append(f"  {name:<24} {'-':>10}     {'-':>7} {'':<20} {'-':>8}  {row['reason']}")
            continue
        interval = f"({row['low']:.3f} to {row['high']:.3f})"
        lines.append(f"  {name:<24} {row['median_ms']:>10.4f} ms  {row['ratio']:>6.3f}x {interval:<20} "
                     f"{row['over_floor']:>7.1f}x  of the floor, differs by {row['difference']:.1e}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "fp16"], default="fp32")
    parser.add_argument("--ours", action="append", default=[], help="NAME=OUTPUT.onnx")
    parser.add_argument("--our-device", help="default: cuda:0, or cpu")
    parser.add_argument("--sides", default="eager,graph,compile,compile-tuned,jax,ort")
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--tolerance", type=float, default=0)
    parser.add_argument("--machine", help="JSON of measure_machine, to measure it once for many models")
    parser.add_argument("--json", help="also writes the document to this file")
    parser.add_argument("model", nargs="?")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("peers.py: torch sees no GPU")
    if not args.model:  # Only the machine.
        machine = measure_machine(torch, args.device, ["fp32", "tf32", "fp16"], 1.0 if args.device == "cuda" else 0.25)
        print(json.dumps(machine))
        return 0
    args.ours = [text.split("=", 1) for text in args.ours]
    args.our_device = args.our_device or ("cuda:0" if args.device == "cuda" else "cpu")
    result = compare(args)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)
    print(table(result))
    limit = args.tolerance or TOLERANCE[args.precision]
    far = [n for n, row in result["rows"].items() if not row.get("difference", 0) <= limit]
    if far:
        print(f"peers.py: outputs differ by more than {limit}: {', '.join(far)}", file=sys.stderr)
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
