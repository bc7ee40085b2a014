"""Samples a second at the best batch: what we hand out beside ONNX Runtime and OpenVINO, interleaved in one process.

    bench/peers/images.py [--threads 2] [--blocks 15] [--json FILE] MODEL.onnx=B:OUTPUT.onnx[,B:OUTPUT.onnx...]...

bench/peers/images.sh makes what this needs and calls it. MODEL leaves its batch open; OUTPUT is what
`autograph optimize MODEL --batch B --objective throughput` made of it. Sides, at each batch B of the outputs, all on so
many threads and in fp32:
  ONNX Runtime         all optimizations
  OpenVINO             PERFORMANCE_HINT LATENCY: one request at a time on all threads
  OpenVINO throughput  PERFORMANCE_HINT THROUGHPUT: as many requests at once as it asks for
  ours                 our runtime on OUTPUT with the plan that it carries
Three blocks of each side at each batch choose two batches for each side; these are measured in every further block, in
alternating order, for about 300 ms each. A side's rate is the best median of its batches. The ratio is over the blocks
our rate over the best rate of the peers in the same block, with its 95 % bootstrap interval: above 1 ours gives more.
Below each model stand the load averages, and what other processes used meanwhile.
Exits 1 when outputs differ by more than 1e-3 of the largest value, 77 without a peer's package.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx
    import openvino

    from common import bootstrap, largest_difference
    from cpu import TOLERANCE, Load, OpenVino, Ort, Ours, make_feeds, versions
except ImportError as error:
    print(f"images.py: {error}", file=sys.stderr)
    sys.exit(77)

BLOCK_SECONDS = 0.3
SETTLE_SECONDS = 0.005  # Longer than any side's threads spin after a run.
CHOOSING_BLOCKS, KEPT = 3, 2


class ManyRequests:
    """OpenVINO with several requests on their way."""

    def __init__(self, path, feeds, threads):
        wanted = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        self.compiled = openvino.Core().compile_model(path, "CPU", wanted)
        self.feeds = [feeds[port.any_name] for port in self.compiled.inputs]
        self.queue = openvino.AsyncInferQueue(self.compiled)

    def run(self):
        request = self.compiled.create_infer_request()
        return [np.array(value) for value in request.infer(self.feeds).values()]

    def samples_per_second(self, batch):
        for _ in range(len(self.queue)):
            self.queue.start_async(self.feeds, share_inputs=True)
        self.queue.wait_all()
        runs, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < BLOCK_SECONDS or runs < 3 * len(self.queue):
            self.queue.start_async(self.feeds, share_inputs=True)
            runs += 1
        self.queue.wait_all()
        return runs * batch / (time.perf_counter() - begin)


def rate_of(side, batch):
    """Samples a second of one block, after a run that settles."""
    time.sleep(SETTLE_SECONDS)
    if isinstance(side, ManyRequests):
        return side.samples_per_second(batch)
    side.run()
    runs, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < BLOCK_SECONDS or runs < 3:
        side.run()
        runs += 1
    return runs * batch / (time.perf_counter() - begin)


def with_batch(path, batch, folder):
    """A copy of the model whose inputs' first axis is the batch."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights:
            continue
        first = value.type.tensor_type.shape.dim[0]
        if first.HasField("dim_value") and first.dim_value != batch:
            raise ValueError(f'input "{value.name}": the batch is {first.dim_value}, not {batch}')
        first.dim_value = batch
    copy = os.path.join(folder, f"batch{batch}.onnx")
    onnx.save(model, copy)
    return copy


def open_sides(model, outputs, args, folder):
    """{(side, batch): side}, and how far each is from ONNX Runtime's outputs."""
    sides, differences = {}, {}
    for batch, output in outputs.items():
        fixed = with_batch(model, batch, folder)
        feeds = make_feeds(fixed)
        shapes = {name: list(value.shape) for name, value in feeds.items()}
        makers = {"ONNX Runtime": lambda: Ort(fixed, feeds, args.threads),
                  "OpenVINO": lambda: OpenVino(fixed, feeds, args.threads),
                  "OpenVINO throughput": lambda: ManyRequests(fixed, feeds, args.threads),
                  "ours": lambda: Ours(output, feeds, args.threads, shapes=shapes)}
        expected = None
        for name, make in makers.items():
            side = sides[name, batch] = make()
            found = [np.array(value) for value in side.run()]
            expected = found if expected is None else expected
            differences[name, batch] = largest_difference(found, expected)
            for warning in getattr(side, "warnings", []):
                print(f"  {name}, batch {batch}: {warning}")
    return sides, differences


def measure(pair, args):
    """Everything about one model; printed as it comes."""
    model, _, given = pair.partition("=")
    outputs = {int(batch): path for batch, _, path in (entry.partition(":") for entry in given.split(","))}
    short = os.path.basename(model).removesuffix(".onnx")
    with tempfile.TemporaryDirectory() as folder:
        sides, differences = open_sides(model, outputs, args, folder)
    load = Load()
    rates = {key: [] for key in sides}
    for block in range(CHOOSING_BLOCKS + args.blocks):
        if block == CHOOSING_BLOCKS:
            kept = []
            for name in dict.fromkeys(name for name, _ in sides):
                own = sorted((key for key in sides if key[0] == name), key=lambda key: -statistics.median(rates[key]))
                kept += own[:KEPT]
        keys = list(sides) if block < CHOOSING_BLOCKS else kept
        for key in keys if block % 2 == 0 else reversed(keys):
            rates[key].append(rate_of(sides[key], key[1]))
    medians = {key: statistics.median(values) for key, values in rates.items()}
    best = {}
    for key in kept:
        if key[0] not in best or medians[key] > medians[best[key[0]]]:
            best[key[0]] = key
    peers = [best[name] for name in best if name != "ours"]
    result = {"model": short, "rates": [], "load": load.found()}
    for name, key in best.items():
        ratio, text = None, ""
        if name == "ours":
            each = [rates[key][i] / max(rates[other][i] for other in peers)
                    for i in range(CHOOSING_BLOCKS, len(rates[key]))]
            low, high = bootstrap(each)
            ratio = {"ratio": statistics.median(each), "low": low, "high": high}
            text = "{ratio:.3f} ({low:.3f} to {high:.3f}) of the peers' best".format(**ratio)
        print(f"{short:<20} {name:<20} {medians[key]:>8.1f}/s at batch {key[1]:<3} {differences[key]:.1e}  {text}", flush=True)
        all_rates = {str(k[1]): medians[k] for k in sides if k[0] == name}
        result["rates"].append({"side": name, "batch": key[1], "rate": medians[key], "by_batch": all_rates, "ratio": ratio})
    for row in result["rates"]:
        print("  " + row["side"] + ": " + ", ".join(f"{rate:.0f}/s at {batch}" for batch, rate in row["by_batch"].items()))
    print("  load average {before:.2f} before, {after:.2f} after; others used {others_cores:.2f} cores meanwhile"
          .format(**result["load"]), flush=True)
    far = {key: off for key, off in differences.items() if not off <= TOLERANCE}
    for (name, batch), off in far.items():
        print(f"  {name}, batch {batch}: TOO FAR from ONNX Runtime: {off:.1e}")
    return result, not far


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="also writes everything there")
    parser.add_argument("models", nargs="+", metavar="MODEL=B:OUTPUT,...")
    args = parser.parse_args()
    found = versions()
    print(f"{args.threads} threads, {args.blocks} blocks; ONNX Runtime {found['onnxruntime']}, OpenVINO {found['openvino']}")
    results, good = [], True
    for pair in args.models:
        try:
            result, close = measure(pair, args)
        except Exception as error:  # The other models are measured all the same.
            print(f"{pair}: {type(error).__name__}: {error}", flush=True)
            good = False
            continue
        results.append(result)
        good = good and close
    if args.json:
        with open(args.json, "w") as file:
            json.dump({**found, "threads": args.threads, "blocks": args.blocks, "models": results}, file, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
