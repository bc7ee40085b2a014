"""Our runtime beside ONNX Runtime and OpenVINO on the CPU: one process, interleaved, the same inputs.

    bench/peers/cpu.py [--threads 2] [--blocks 15] [--retuned] [--json FILE] MODEL.onnx[=OUTPUT.onnx]...
    bench/peers/cpu.py --bf16 [--threads 2] [--blocks 15] MODEL.onnx=OUTPUT.onnx...
    bench/peers/cpu.py --busy CORE [--runs 500] [--rounds 5] [--sides NAME,NAME] MODEL.onnx[=OUTPUT.onnx]...

bench/peers/cpu.sh makes what this needs and calls it. MODEL is what a user has, OUTPUT what `autograph optimize`
made of it. Sides, all on so many threads and in fp32:
  ONNX Runtime  all optimizations
  OpenVINO      PERFORMANCE_HINT LATENCY, INFERENCE_PRECISION_HINT f32
  untuned       our runtime on MODEL: clean-up and grouping, no rules, kernels by estimate: what a session gets at once
  tuned         the same with every kernel measured (`autograph bench --tune`)
  as returned   our runtime on OUTPUT with the plan that it carries
  retuned       our runtime on OUTPUT, its plan ignored and a new one tuned (--retuned)
With --bf16 OUTPUT is of `optimize --precision bf16`, and the sides are
  ONNX Runtime  as above, in fp32
  OpenVINO      in its default precision, which is bf16 where the processor has AVX512-BF16 or AMX
  OpenVINO f32  as OpenVINO above
  untuned       as above, in fp32
  as returned   our runtime on OUTPUT, in bf16
Every block runs each side once to settle and then for about 100 ms; the order alternates from block to block. A
ratio is the median over the blocks of one side's time over the other's, with its 95 % bootstrap interval: below 1
the row is faster than the column. With --busy a process spins on one core meanwhile; each of the rounds runs every
side --runs times in a row, and there is a table of medians and one of 99th percentiles over the rounds.
Below each model stand the load averages before and after, and what other processes used meanwhile.
Exits 1 when outputs differ by more than 1e-3 of the largest value (1e-2 of f16 models, 5e-2 with --bf16), 77 without ONNX Runtime.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

try:
    import numpy as np
    import onnxruntime
    from common import bootstrap, largest_difference, our_session
except ImportError as error:
    print(f"cpu.py: {error}", file=sys.stderr)
    sys.exit(77)

SETTLE_SECONDS = 0.005  # Longer than any side's threads spin after a run.
BLOCK_SECONDS = 0.1
TOLERANCE, TOLERANCE_OF_HALF = 1e-3, 1e-2  # The second where an output is f16.
TOLERANCE_OF_BF16 = 5e-2  # With --bf16.
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
# What the columns compare with, and their titles.
BASES = {"ONNX Runtime": "of ONNX Runtime", "OpenVINO": "of OpenVINO", "untuned": "of untuned"}


class Ours:
    """A session of ours with buffers for the outputs."""

    def __init__(self, path, feeds, threads, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.session = our_session()(path, device=f"cpu:{threads}", **options)
        self.warnings = [str(warning.message) for warning in caught]
        self.feeds = {i.name: feeds[i.name] for i in self.session.inputs}
        self.outputs = {o.name: np.zeros(o.shape, o.dtype) for o in self.session.outputs}

    def run(self):
        return list(self.session.run(self.feeds, out=self.outputs).values())


class Ort:
    def __init__(self, path, feeds, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        # Its threads spin while it runs, as by default, but not into our turn.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feeds = {i.name: feeds[i.name] for i in self.session.get_inputs()}

    def run(self):
        return self.session.run(None, self.feeds)


class OpenVino:
    def __init__(self, path, feeds, threads, precision="f32", is_default=False):
        import openvino
        wanted = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}
        given = {name: wanted[name] for name in wanted if not (is_default and name == "INFERENCE_PRECISION_HINT")}
        compiled = openvino.Core().compile_model(path, "CPU", given)
        for name in wanted:  # What is set, or expected as the default, is what it says.
            found = compiled.get_property(name)
            found = found.to_string() if hasattr(found, "to_string") else getattr(found, "name", found)
            if found != wanted[name]:
                raise RuntimeError(f"OpenVINO: {name} is {found}, not {wanted[name]}")
        self.feeds = [feeds[port.any_name] for port in compiled.inputs]
        self.request = compiled.create_infer_request()

    def run(self):
        return list(self.request.infer(self.feeds, share_inputs=True, share_outputs=True).values())


def make_feeds(path):
    rng = np.random.default_rng(1)
    feeds = {}
    for i in onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs():
        if any(not isinstance(d, int) for d in i.shape):
            raise ValueError(f'input "{i.name}" has open sizes {i.shape}')
        floats = FLOATS.get(i.type)
        integers = np.int32 if i.type == "tensor(int32)" else np.int64
        feeds[i.name] = (rng.standard_normal(i.shape).astype(floats) if floats
                         else rng.integers(0, 2, i.shape).astype(integers))
    return feeds


def open_sides(model, output, args):
    """The wanted sides by name. A peer that cannot open the model is left out, and why is printed."""
    feeds, sides = make_feeds(model), {}
    tuned = {"plan": "input", "tune": True, "streams": args.streams, "tuned_plans": args.tuned_plans or ""}
    makers = {"ONNX Runtime": lambda: Ort(model, feeds, args.threads),
              "OpenVINO": lambda: OpenVino(model, feeds, args.threads),
              "untuned": lambda: Ours(model, feeds, args.threads, plan="input"),
              "tuned": lambda: Ours(model, feeds, args.threads, **tuned)}
    if args.bf16:
        makers["OpenVINO"] = lambda: OpenVino(model, feeds, args.threads, "bf16", is_default=True)
        makers["OpenVINO f32"] = lambda: OpenVino(model, feeds, args.threads)
        del makers["tuned"]
    if output:
        makers["as returned"] = lambda: Ours(output, feeds, args.threads)
        if args.retuned:
            makers["retuned"] = lambda: Ours(output, feeds, args.threads, **tuned)
    for name in args.sides.split(",") if args.sides else makers:
        if name not in makers:
            raise ValueError(f'no side "{name}": {", ".join(makers)}')
        try:
            sides[name] = makers[name]()
        except Exception as error:
            if name not in ("ONNX Runtime", "OpenVINO", "OpenVINO f32"):
                raise
            print(f"  {name} is left out: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
    return sides


def differences_of(sides):
    """How far each side's outputs are from the first one's."""
    first, *others = sides
    expected = [np.array(value) for value in sides[first].run()]
    return {first: 0.0, **{name: largest_difference(sides[name].run(), expected) for name in others}}


def run_ms(side):
    begin = time.perf_counter()
    side.run()
    return (time.perf_counter() - begin) * 1e3


def block_ms(side):
    """Median milliseconds of a run, after one that settles."""
    time.sleep(SETTLE_SECONDS)
    side.run()
    times, end = [], time.perf_counter() + BLOCK_SECONDS
    while time.perf_counter() < end or len(times) < 3:
        times.append(run_ms(side))
    return statistics.median(times)


def interleave(sides, blocks, sample):
    """`sample` of every side in every block; the order alternates."""
    found = {name: [] for name in sides}
    for block in range(blocks):
        for name in (list(sides) if block % 2 == 0 else list(reversed(sides))):
            found[name].append(sample(sides[name]))
    return found


def tail_ms(side, runs):
    """Median and 99th percentile of so many runs in a row, after three that settle."""
    time.sleep(SETTLE_SECONDS)
    for _ in range(3):
        side.run()
    times = sorted(run_ms(side) for _ in range(runs))
    return statistics.median(times), times[min(runs - 1, int(runs * 0.99))]


@contextlib.contextmanager
def spinning(core):
    """A process that keeps one core busy."""
    words = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"]
    child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words])
    try:
        time.sleep(0.3)
        if child.poll() is not None:
            raise RuntimeError(f"nothing spins on core {core}: exit code {child.returncode}")
        yield
    finally:
        child.kill()
        child.wait()


class Load:
    """How busy the machine is with others."""

    def __init__(self):
        self.before = os.getloadavg()[0]
        self.begin = time.monotonic(), self.all_seconds(), self.own_seconds()

    @staticmethod
    def all_seconds():
        """Processor time that all processes used, and what a hypervisor took."""
        with open("/proc/stat") as stat:
            user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_seconds():
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    def found(self):
        begin, all_seconds, own = self.begin
        others = (self.all_seconds() - all_seconds) - (self.own_seconds() - own)
        return {"before": self.before, "after": os.getloadavg()[0],
                "others_cores": max(0.0, others / max(1e-9, time.monotonic() - begin))}


def rows_of(times, differences):
    """One row a side: its median, and its ratios to the sides of BASES."""
    rows = {}
    for name, values in times.items():
        ratios = {}
        for base in BASES:
            if base in times and base != name:
                each = [a / b for a, b in zip(values, times[base])]
                low, high = bootstrap(each)
                ratios[base] = {"ratio": statistics.median(each), "low": low, "high": high}
        rows[name] = {"median_ms": statistics.median(values), "ratios": ratios, "difference": differences[name]}
    return rows


def print_header(what):
    titles = "".join(f"{title:<26}" for title in BASES.values())
    print(f"{'model':<22} {'side':<13}{what:>10}   {titles}differs", flush=True)


def print_rows(model, rows):
    for name, row in rows.items():
        cells = ""
        for base in BASES:
            ratio = row["ratios"].get(base)
            text = f"{ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})" if ratio else "-"
            cells += f"{text:<26}"
        print(f"{model:<22} {name:<13}{row['median_ms']:>10.3f}   {cells}{row['difference']:.1e}", flush=True)


def measure(pair, args):
    """Everything about one model; printed as it comes."""
    model, _, output = pair.partition("=")
    sides = open_sides(model, output, args)
    short = os.path.basename(model).removesuffix(".onnx")
    result = {"model": short, "differences": differences_of(sides)}
    load = Load()
    if args.busy is None:
        result["sides"] = rows_of(interleave(sides, args.blocks, block_ms), result["differences"])
        print_rows(short, result["sides"])
    else:
        with spinning(args.busy):
            tails = interleave(sides, args.rounds, lambda side: tail_ms(side, args.runs))
        for i, part in enumerate(("median", "p99")):
            times = {name: [pair[i] for pair in pairs] for name, pairs in tails.items()}
            result[part] = rows_of(times, result["differences"])
            print_rows(f"{short} {part}", result[part])
    result["load"] = load.found()
    print("  load average {before:.2f} before, {after:.2f} after; others used {others_cores:.2f} cores meanwhile"
          .format(**result["load"]), flush=True)
    for warning in (sides["as returned"].warnings if "as returned" in sides else []):
        print(f"  as returned: {warning}")
    is_half = any(np.asarray(output).dtype == np.float16 for output in next(iter(sides.values())).run())
    limit = TOLERANCE_OF_BF16 if args.bf16 else TOLERANCE_OF_HALF if is_half else TOLERANCE
    far = {name: off for name, off in result["differences"].items() if not off <= limit}
    for name, off in far.items():
        print(f"  {name}: TOO FAR from {next(iter(sides))}: {off:.1e}")
    return result, not far


def versions():
    try:
        import openvino
        found = openvino.__version__.split("-")[0]
    except ImportError:
        found = "not installed: scripts/install.sh --cpu-peers"
    return {"onnxruntime": onnxruntime.__version__, "openvino": found}


def measure_all(args, how, measure):
    """Calls measure(model, args) for each of the models, writes --json and returns the exit code."""
    results, good = [], True
    for model in args.models:
        try:
            result, close = measure(model, args)
        except Exception as error:  # The other models are measured all the same.
            print(f"{model}: {type(error).__name__}: {error}", flush=True)
            good = False
            continue
        results.append(result)
        good = good and close
    if args.json:
        with open(args.json, "w") as file:
            json.dump({**versions(), "threads": args.threads, "how": how, "models": results}, file, indent=1)
    return 0 if good else 1


def print_head(args, how):
    found = versions()
    print(f"{args.threads} threads, {how}; ONNX Runtime {found['onnxruntime']}, OpenVINO {found['openvino']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--streams", type=int, default=0, help="of the plans tuned here at most so many; 0: as tuning finds")
    parser.add_argument("--tuned-plans", help="folder that remembers what tuning found")
    parser.add_argument("--retuned", action="store_true", help="also OUTPUT with a plan tuned here")
    parser.add_argument("--bf16", action="store_true", help="OUTPUT is in bf16; beside OpenVINO's default")
    parser.add_argument("--sides", metavar="NAME,NAME", help="only these sides")
    parser.add_argument("--busy", type=int, metavar="CORE", help="a process spins on this core meanwhile")
    parser.add_argument("--runs", type=int, default=500, help="with --busy: runs a round")
    parser.add_argument("--rounds", type=int, default=5, help="with --busy")
    parser.add_argument("--json", metavar="FILE", help="also writes everything there")
    parser.add_argument("models", nargs="+", metavar="MODEL[=OUTPUT]")
    args = parser.parse_args()
    how = (f"{args.blocks} blocks" if args.busy is None
           else f"{args.rounds} rounds of {args.runs} runs, core {args.busy} busy")
    print_head(args, how)
    print_header("ms")
    return measure_all(args, how, measure)


if __name__ == "__main__":
    sys.exit(main())
