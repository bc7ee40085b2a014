"""Tables of what the steps found, in Markdown. What is missing is a dash."""

SIDES = ["eager", "graph", "compile", "compile-tuned", "jax", "ort"]


def number(value, form="{:.3f}"):
    return form.format(value) if isinstance(value, (int, float)) else "-"


def rows_table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def result_of(state, name):
    step = state["steps"].get(name, {})
    return step.get("result") or {} if step.get("status") == "done" else {}


def steps_table(state):
    rows = []
    for name, step in state["steps"].items():
        rows.append([name, step["status"], number(step.get("seconds"), "{:.0f}"), step.get("reason", "").replace("|", "/")])
    return rows_table(["step", "how it ended", "s", "why"], rows)


def ours_table(state, models, precisions):
    """Where our gain comes from: each column over the one before it."""
    rows = []
    for model in models:
        for precision in precisions:
            one, best = (result_of(state, f"{kind} {model} {precision}") for kind in ("one stream", "best"))

            def median_ms(result, key):
                median_ns = (result.get(key) or {}).get("median_ns")
                return median_ns and median_ns / 1e6
            output, over = median_ms(one, "output_latency"), (one.get("over_tuned_input") or {}).get("median")
            tuned_input = output * over if output and over else None  # What rewrites alone gain is over this.
            times = [median_ms(one, "unfused_latency"), tuned_input, output, median_ms(best, "output_latency")]
            gains = [a / b if a and b else None for a, b in zip(times, times[1:])]
            rows.append([model, precision, *[number(t, "{:.4f}") for t in times], *[number(g) for g in gains],
                         number(best.get("speedup")), best.get("verdict") or "-", number(best.get("streams"), "{}")])
    return rows_table(["model", "precision", "unfused ms", "tuned input ms", "one stream ms", "best ms", "grouping", "rewrites",
                       "streams", "speedup", "verdict", "streams used"], rows)


def peers_table(state, models, precisions):
    """Each peer's time over our best plan's, of the run in which both were interleaved."""
    rows = []
    for model in models:
        for precision in precisions:
            found, floor, ours, over = {}, None, None, None
            for sides in ("eager,graph,ort", "compile", "compile-tuned", "jax"):
                result = result_of(state, f"peers {sides} {model} {precision}")
                mine = result.get("rows", {}).get("ours: best", {}).get("median_ms")
                if mine:
                    floor, ours, over = result["floor_ms"], mine, mine / result["floor_ms"]
                for side, row in result.get("rows", {}).items():
                    if side in SIDES and "median_ms" in row:
                        found[side] = row["median_ms"] / mine if mine else None
            rows.append([model, precision, number(ours, "{:.4f}"), number(floor, "{:.4f}"), number(over, "{:.1f}"),
                         *[number(found.get(side)) for side in SIDES]])
    return rows_table(["model", "precision", "our best ms", "floor ms", "over floor", *SIDES], rows)


def summary(state, models, precisions):
    machine = result_of(state, "machine")
    facts = [f"- {key}: {value}" for key, value in machine.items() if key not in ("doctor",) and value]
    limits = result_of(state, "limits")
    if limits:
        peaks = ", ".join(f"{p} {v / 1e12:.1f} TFLOP/s" for p, v in limits["operations_per_second"].items())
        facts.append(f"- limits: {limits['bytes_per_second'] / 1e9:.0f} GB/s, {peaks}, launch gap "
                     f"{limits['launch_gap_ns']:.0f} ns")
    return "\n".join([f"# {state['device']}", "", *facts, "", "## Ours", "", ours_table(state, models, precisions),
                      "## Peers, over our best plan", "", peers_table(state, models, precisions), "## Steps", "",
                      steps_table(state)])


def groups(state, models, precisions):
    """Of each output's plan: group, the kernel that won, those that lost, from slow to fast."""
    parts = ["# Groups of our best plans\n"]
    for model in models:
        for precision in precisions:
            result = result_of(state, f"best {model} {precision}")
            if not result:
                parts.append(f"## {model} {precision}: -\n")
                continue
            lines = {}
            for line in result["plan"]:
                head, colon, rest = line.strip().partition(": ")
                if colon and head.isdigit():
                    lines[int(head)] = rest.split("  kernel ")[0].replace("|", "/")
            rows = []
            for group in sorted(result["kernels"], key=lambda g: -g["measurement"]["latency"]["median_ns"]):
                measured = group["measurement"]
                others = ", ".join(f"{o['kernel']} {o['median_ns'] / 1e3:.2f}" for o in measured["alternatives"])
                rows.append([str(group["group"]), lines.get(group["group"], "-"), measured["kernel"],
                             number(measured["latency"]["median_ns"] / 1e3, "{:.2f}"), others or "-"])
            parts.append(f"## {model} {precision}\n\n" +
                         rows_table(["group", "what", "kernel", "us", "others, us"], rows))
    return "\n".join(parts)
