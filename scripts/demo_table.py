"""Prints what `autograph optimize --json` said of some models as one table; a column a model.

usage: demo_table.py NAME=FILE.json=SECONDS...
Exits 1 when there is no result for one of them.
"""

import json
import sys

# The document's members that are read (docs/cli.md, `optimize --json`).
BASELINE, INPUT_LATENCY, OUTPUT_LATENCY = "baseline", "input_latency", "output_latency"
OVER_ONNXRUNTIME, OVER_UNTUNED, OVER_TUNED = "over_onnxruntime", "over_untuned", "over_tuned_input"
VERDICT, SEARCH, OUTPUT, CACHE, HIT = "verdict", "search", "output", "cache", "model_hit"
MEDIAN, LOW, HIGH = "median", "low", "high"  # Of a ratio.
MEDIAN_NS = "median_ns"  # Of a time.

TITLE, CELL = 24, 28  # Two models fill 80 columns.


def milliseconds(value):
    """A time in nanoseconds; "-" when there is none."""
    return f"{value / 1e6:.3f} ms" if value else "-"


def ratio(found):
    """A speedup with its interval; "-" when it was not measured."""
    return f"{found[MEDIAN]:.3f}x ({found[LOW]:.3f} to {found[HIGH]:.3f})" if found else "-"


def words(text):
    """NO_GAIN_FOUND as people write it."""
    return str(text or "-").replace("_", " ")


def column(document, seconds):
    """All rows of one model."""
    today, after = (document.get(name, {}).get(MEDIAN_NS) for name in (INPUT_LATENCY, OUTPUT_LATENCY))
    in_ort = str(document.get(BASELINE, "")).startswith("ONNX Runtime")
    untuned = document.get(OVER_UNTUNED)
    before = after * untuned[MEDIAN] if untuned and after else None if in_ort else today
    remembered = document.get(CACHE, {}).get(HIT, False)
    return {
        "ONNX Runtime": milliseconds(today if in_ort else None),
        "AutoGraph before": milliseconds(before),
        "AutoGraph after": milliseconds(after),
        "over ONNX Runtime": ratio(document.get(OVER_ONNXRUNTIME)),
        "over AutoGraph before": ratio(untuned),
        "over that, tuned": ratio(document.get(OVER_TUNED)),
        "verdict": words(document.get(VERDICT)),
        "search": words(document.get(SEARCH)),
        "the new file is": words(document.get(OUTPUT)).lower(),
        "seconds": f"{seconds}{' (remembered)' * remembered}",
    }


def read(path):
    """The document, or what is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        return {"error": {"message": f"{path}: {error}"}}


def main():
    """Returns the exit code."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    columns, failed = {}, False
    for word in sys.argv[1:]:
        name, path, seconds = word.rsplit("=", 2)
        document = read(path)
        if "error" in document:
            failed = True
            print(f"{name}: no result: {document['error']['message']}")
        else:
            columns[name] = column(document["result"], seconds)
    names = list(columns)
    for begin in range(0, len(names), 2):
        part = names[begin:begin + 2]
        print(f"{'':<{TITLE}}" + "".join(f"{name:<{CELL}}" for name in part).rstrip())
        for title in columns[part[0]]:
            print(f"{title:<{TITLE}}" + "".join(f"{columns[n][title]:<{CELL}}" for n in part).rstrip())
    if columns:
        print("Before: our session on the file as it came; after: on the new file. In (): 99 % intervals.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
