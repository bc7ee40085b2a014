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
    from cpu import SETTLE_SECONDS, TOLERANCE, Load, OpenVino, Ort, Ours, make_feeds, measure_all, print_head
except ImportError as error:
    print(f"images.py: {error}", file=sys.stderr)
    sys.exit(77)

BLOCK_SECONDS = 0.3
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


def measure_rates(sides, blocks):
    """{(side, batch): rates by block}, and for each side the key with the best median of those measured to the end."""
    rates, keys = {key: [] for key in sides}, list(sides)
    names = list(dict.fromkeys(name for name, _ in sides))
    fastest = lambda name: sorted((key for key in keys if key[0] == name), key=lambda key: -statistics.median(rates[key]))
    for block in range(CHOOSING_BLOCKS + blocks):
        if block == CHOOSING_BLOCKS:
            keys = [key for name in names for key in fastest(name)[:KEPT]]
        for key in keys if block % 2 == 0 else reversed(keys):
            rates[key].append(rate_of(sides[key], key[1]))
    return rates, {name: fastest(name)[0] for name in names}


def ratio_to(own, others):
    """Ours over the best of the others in each block after those that chose."""
    each = [mine / max(theirs) for mine, *theirs in list(zip(own, *others))[CHOOSING_BLOCKS:]]
    low, high = bootstrap(each)
    return {"ratio": statistics.median(each), "low": low, "high": high}


def measure(pair, args):
    """Everything about one model; printed as it comes."""
    model, _, given = pair.partition("=")
    outputs = {int(batch): path for batch, _, path in (entry.partition(":") for entry in given.split(","))}
    short = os.path.basename(model).removesuffix(".onnx")
    with tempfile.TemporaryDirectory() as folder:
        sides, differences = open_sides(model, outputs, args, folder)
    load = Load()
    rates, best = measure_rates(sides, args.blocks)
    result = {"model": short, "rates": [], "load": load.found()}
    for name, key in best.items():
        medians = {batch: statistics.median(values) for (side, batch), values in rates.items() if side == name}
        ratio = ratio_to(rates[key], [rates[best[peer]] for peer in best if peer != name]) if name == "ours" else None
        text = "{ratio:.3f} ({low:.3f} to {high:.3f}) of the peers' best".format(**ratio) if ratio else ""
        print(f"{short:<20} {name:<20} {medians[key[1]]:>8.1f}/s at batch {key[1]:<3} {differences[key]:.1e}  {text}")
        print("  " + ", ".join(f"{rate:.0f}/s at {batch}" for batch, rate in medians.items()), flush=True)
        result["rates"].append({"side": name, "batch": key[1], "by_batch": medians, "ratio": ratio})
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
    how = f"{args.blocks} blocks"
    print_head(args, how)
    return measure_all(args, how, measure)


if __name__ == "__main__":
    sys.exit(main())
