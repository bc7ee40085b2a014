#!/usr/bin/env python3
"""The fault matrix: what is done to the service, what must hold, and what shows it.

faults.toml has a row for each fault. A row is shown by tests of the build (a program and its tests)
and by scenarios, functions of this folder's modules that start real processes. A row's mutation is
one line of the product's source, changed: the row must fail with it. All mutations are built at
once into a copy of the tree in build-faults/, each behind AgMutant(number of the row), and the
variable AG_MUTANT chooses one. The product itself has no such switch.

  scripts/faults.sh                    # runs every covered row
  scripts/faults.sh --only F12,F30     # runs these
  scripts/faults.sh --list             # prints the rows: "F12 name"
  scripts/faults.sh --mutate [F12,F30] # each row passes without its mutation and fails with it
  scripts/faults.sh --record ...       # also writes results.json and docs/faults.md
  scripts/faults.sh --write            # writes docs/faults.md and runs nothing
  scripts/faults.sh --check            # docs/faults.md is what faults.toml and results.json say
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "mutants"))

from mutants import HEADER, Copy  # noqa: E402

SCRATCH = ROOT / "build-faults"
PAGE = ROOT / "docs" / "faults.md"
RESULTS = HERE / "results.json"
PROGRAMS = ["autographd", "autograph-worker", "autograph", "kill_at", "step_clock", "disk"]
ROW_SECONDS_MAX = 300
Row = Dict[str, Any]


def number_of(row: Row) -> int:
    """Returns 12 for F12."""
    return int(row["id"][1:])


def load() -> List[Row]:
    """Returns the rows of faults.toml."""
    with open(HERE / "faults.toml", "rb") as file:
        return tomllib.load(file)["row"]


def is_covered(row: Row) -> bool:
    """Whether something shows the row."""
    return bool(row.get("shown_by"))


def digest(value: Any) -> str:
    """Returns a short name of a value, by its content."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


# --- Running


def command_of(shown_by: str, build: Path) -> List[str]:
    """Returns the command of a test ("PROGRAM FILTER") or of a scenario ("MODULE.FUNCTION")."""
    if " " in shown_by:
        program, tests = shown_by.split()
        return [str(build / program), f"--gtest_filter={tests}"]
    return [sys.executable, str(HERE / "scenario.py"), shown_by]


def has_run(shown_by: str, output: str) -> bool:
    """Whether every test that is named was there, ran and was not skipped."""
    if " " not in shown_by:
        return True
    tests = shown_by.split()[1].split(":")
    passed = re.search(r"\[  PASSED  \] (\d+) test", output)
    return passed is not None and int(passed[1]) >= len(tests) and "[  SKIPPED ]" not in output


def run_one(shown_by: str, build: Path, mutant: int) -> Optional[str]:
    """Runs a test or a scenario; returns how it failed, or None."""
    with tempfile.TemporaryDirectory(prefix="autograph-faults-") as scratch:
        variables = {
            **os.environ,
            "AG_MUTANT": str(mutant),
            "AUTOGRAPH_BUILD": str(build),
            "AUTOGRAPH_PYTHON": str(ROOT / ".venv" / "bin" / "python"),
            "TMPDIR": scratch,
            "XDG_CACHE_HOME": scratch,
        }
        try:
            ended = subprocess.run(
                command_of(shown_by, build),
                env=variables,
                cwd=ROOT,
                timeout=ROW_SECONDS_MAX,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{shown_by}: not over after {ROW_SECONDS_MAX} s"
    output = ended.stdout.decode(errors="replace")
    if ended.returncode == 0 and has_run(shown_by, output):
        return None
    return f"{shown_by}: exit code {ended.returncode}\n{output[-3000:]}"


def run_row(row: Row, build: Path, mutant: int) -> Optional[str]:
    """Runs a row up to the first failure; returns it, or None."""
    for shown_by in row["shown_by"]:
        if (failure := run_one(shown_by, build, mutant)) is not None:
            return failure
    return None


# --- Mutating


def place_of(change: Dict[str, str]) -> str:
    """Returns the text that a file has once, with the old text of a mutation in it."""
    return change.get("in", change["old"])


def mutated(text: str, row: Row) -> str:
    """Returns the text with the row's mutation behind AgMutant."""
    change = row["mutation"]
    old, new, place = change["old"], change["new"], place_of(change)
    if text.count(place) != 1:
        raise SystemExit(f"{row['id']}: {change['file']} has this {text.count(place)} times: {place}")
    chosen = f"AgMutant({number_of(row)})"
    if old.endswith(";"):
        both = f"if ({chosen}) {{ {new} }} else {{ {old} }}"
    else:
        both = f"({chosen} ? ({new}) : ({old}))"
    return text.replace(place, place.replace(old, both, 1))


def changed_files(rows: List[Row]) -> Dict[str, str]:
    """Returns the files of the copy that differ from the tree: all mutations, each behind its number."""
    texts: Dict[str, str] = {}
    for row in rows:
        path = row["mutation"]["file"]
        text = texts.get(path) or (ROOT / path).read_text(encoding="utf-8")
        texts[path] = mutated(text, row)
    for path, text in texts.items():
        texts[path] = f'#include "ag_mutant.h"\n#line 1 "{path}"\n{text}'
    return {**texts, "ag_mutant.h": HEADER}


def targets_of(rows: List[Row]) -> List[str]:
    """Returns what must be built to run rows."""
    return sorted({p.split()[0] for row in rows for p in row["shown_by"] if " " in p}) + PROGRAMS


def build_mutants(every: List[Row], rows: List[Row]) -> Path:
    """Builds what `rows` run, with the mutations of `every` row, in the copy; returns its folder.

    A file has the same text whichever rows are asked for, so nothing is compiled twice.
    """
    SCRATCH.mkdir(exist_ok=True)
    copy = Copy(str(SCRATCH))
    copy.sync(changed_files([row for row in every if "mutation" in row]))
    copy.configure()
    built = copy.make(targets_of(rows), 2)
    if built.returncode != 0:
        raise SystemExit(f"faults.py: the mutants do not build:\n{built.stdout[-4000:]}")
    return Path(copy.build)


# --- Results and the page


def commit() -> Optional[str]:
    """Returns the commit that the tree is of; None: it has changes of its own."""
    ask = ["git", "status", "--porcelain", "--untracked-files=no"]
    lines = subprocess.run(ask, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    ours = {str(PAGE.relative_to(ROOT)), str(RESULTS.relative_to(ROOT))}
    if any(line[3:] not in ours for line in lines.splitlines()):
        return None
    ask = ["git", "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(ask, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def load_results() -> Dict[str, Any]:
    """Returns what was recorded."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def recorded(row: Row, results: Dict[str, Any], what: str) -> str:
    """Returns the commit of the last pass ("shown_by") or of the last failure by the mutation.

    What was recorded of other tests, or of another mutation, does not count.
    """
    entry = results.get(row["id"], {}).get(what, {})
    if what not in row or entry.get("of") != digest([row["shown_by"], row[what]]):
        return ""
    return entry["commit"]


def cell(text: str) -> str:
    """Returns text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def shown_text(row: Row) -> str:
    """Returns what shows a row, for the page."""
    parts = []
    for shown_by in row["shown_by"]:
        if " " in shown_by:
            program, tests = shown_by.split()
            parts.append(f"`{program}`: " + ", ".join(f"`{t}`" for t in tests.split(":")))
        else:
            parts.append(f"`tests/faults/{shown_by.split('.')[0]}.py`: `{shown_by.split('.')[1]}`")
    return "; ".join(parts)


def mutation_text(row: Row) -> str:
    """Returns the mutation, for the page."""
    if "mutation" not in row:
        return "none"
    change = row["mutation"]
    new = change["new"] or "nothing"
    return f"`{change['file']}`: `{cell(change['old'])}` becomes `{cell(new)}`"


def page(rows: List[Row], results: Dict[str, Any]) -> str:
    """Returns docs/faults.md."""
    covered = [row for row in rows if is_covered(row)]
    passed = [row for row in covered if recorded(row, results, "shown_by")]
    failed = [row for row in covered if recorded(row, results, "mutation")]
    lines = [
        "# Faults",
        "",
        "What can go wrong around the service, what must hold then, and the command that shows it. Made by "
        "`scripts/faults.sh` from",
        "`tests/faults/faults.toml` (`tests/faults` says how a row is added). "
        f"Of {len(rows)} rows {len(covered)} are covered; {len(passed)}",
        f"have passed as they are, and {len(failed)} were seen to fail when one line of their defence "
        "was changed.",
        "",
        "A row alone: `scripts/faults.sh --only F1`. The last columns name the commit of the last pass, "
        "and the commit at which the row failed",
        "with its mutation.",
        "",
        "| row | fault | what is done | what must hold | shown by | mutation that makes it fail | passed | "
        "failed with it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in covered:
        cells = [
            row["id"],
            cell(row["name"]),
            cell(row["done"]),
            cell(row["holds"]),
            shown_text(row),
            mutation_text(row),
            recorded(row, results, "shown_by") or "not yet",
            recorded(row, results, "mutation") or "not yet",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Not covered", "", "| row | fault | reason |", "|---|---|---|"]
    for row in rows:
        if not is_covered(row):
            lines.append(f"| {row['id']} | {cell(row['name'])} | {cell(row['reason'])} |")
    lines += ["", "## Covered in part", "", "| row | what is not shown |", "|---|---|"]
    for row in covered:
        if "missing" in row:
            lines.append(f"| {row['id']} | {cell(row['missing'])} |")
    return "\n".join(lines) + "\n"


def problems_of(row: Row) -> List[str]:
    """Returns what is wrong with a row: a test that no source has, a mutation whose line is gone."""
    problems = []
    for shown_by in row.get("shown_by", []):
        if " " not in shown_by:
            module, function = shown_by.split(".")
            path = HERE / f"{module}.py"
            if not path.exists() or f"\ndef {function}(" not in path.read_text(encoding="utf-8"):
                problems.append(f"there is no scenario {shown_by}")
            continue
        folder = shown_by.split("_test ")[0]
        for test in shown_by.split()[1].split(":"):
            suite, name = test.split("/")[-1 if "/" not in test else 1].split(".")
            if not has_test(folder, suite, name.split("/")[0]):
                problems.append(f"no source of {folder}_test has {suite}.{name}")
    if "mutation" in row:
        path = ROOT / row["mutation"]["file"]
        count = path.read_text(encoding="utf-8").count(place_of(row["mutation"])) if path.exists() else 0
        if count != 1:
            problems.append(f"{row['mutation']['file']} has the line of the mutation {count} times")
    elif is_covered(row):
        problems.append("it has no mutation")
    if is_covered(row) == ("reason" in row):
        problems.append("a row has tests, or a reason why it has none")
    return problems


_SOURCES: Dict[str, List[Tuple[str, str]]] = {}


def has_test(folder: str, suite: str, name: str) -> bool:
    """Whether a *_test.cc has this test; `folder` is a room's path with underscores."""
    if not _SOURCES:
        ask = ["git", "ls-files", "*_test.cc"]
        listed = subprocess.run(ask, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for path in listed.split():
            room = os.path.dirname(path).replace("/", "_")
            text = (ROOT / path).read_text(encoding="utf-8")
            for found in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", text, re.MULTILINE):
                _SOURCES.setdefault(room, []).append(found)
    return (suite, name) in _SOURCES.get(folder, [])


def check(rows: List[Row]) -> int:
    """Says what does not fit together; returns an exit code."""
    problems = [f"{row['id']}: {problem}" for row in rows for problem in problems_of(row)]
    if [row["id"] for row in rows] != [f"F{n}" for n in range(1, len(rows) + 1)]:
        problems.append("the rows are not F1, F2, ... in order")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(rows, load_results()):
        problems.append("docs/faults.md is not what it would be now: scripts/faults.sh --write")
    for problem in problems:
        print(f"faults: {problem}", file=sys.stderr)
    return 1 if problems else 0


# --- The whole


class Recorder:
    """Writes results.json and the page after each row, so that a long run may be cut off."""

    def __init__(self, rows: List[Row], wanted: bool) -> None:
        self.rows = rows
        self.commit = commit() if wanted else None
        if wanted and self.commit is None:
            raise SystemExit("faults.py: commit first: a result is of a commit")

    def add(self, row: Row, what: str) -> None:
        """Records that the row passed ("shown_by"), or failed with its mutation."""
        if self.commit is None:
            return
        results = load_results()
        entry = {"commit": self.commit, "of": digest([row["shown_by"], row[what]])}
        results.setdefault(row["id"], {})[what] = entry
        order = sorted(results, key=lambda name: int(name[1:]))
        text = json.dumps({name: results[name] for name in order}, indent=1, sort_keys=True)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        write_page(self.rows)


def write_page(rows: List[Row]) -> None:
    """Writes docs/faults.md."""
    PAGE.write_text(page(rows, load_results()), encoding="utf-8")


def run(rows: List[Row], build: Path, recorder: Recorder) -> int:
    """Runs rows; returns how many failed."""
    failures = 0
    for row in rows:
        begin = time.monotonic()
        failure = run_row(row, build, 0)
        seconds = time.monotonic() - begin
        how = "passed" if failure is None else "FAILED"
        print(f"{row['id']:4} {how} {seconds:6.1f} s  {row['name']}", flush=True)
        if failure is None:
            recorder.add(row, "shown_by")
        else:
            failures += 1
            print(failure, flush=True)
    return failures


def why(failure: str) -> str:
    """Returns the line of a failure that says most."""
    lines = [line.strip() for line in failure.splitlines() if re.search(r"Error: |: Failure$|not over", line)]
    return (lines or failure.splitlines())[-1 if lines and "Error: " in lines[-1] else 0][:160]


def mutate(every: List[Row], rows: List[Row], recorder: Recorder) -> int:
    """Runs rows with and without their mutations; returns how many do not notice theirs."""
    build = build_mutants(every, rows)
    survivors = 0
    for row in rows:
        failure = run_row(row, build, 0)
        if failure is not None:
            survivors += 1
            print(f"{row['id']:4} FAILED without its mutation\n{failure}", flush=True)
            continue
        failure = run_row(row, build, number_of(row))
        if failure is None:
            survivors += 1
            print(f"{row['id']:4} DOES NOT NOTICE its mutation", flush=True)
            continue
        recorder.add(row, "mutation")
        print(f"{row['id']:4} fails with its mutation: {why(failure)}", flush=True)
    return survivors


def parse_arguments() -> argparse.Namespace:
    """Returns the words of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/faults.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", metavar="ROWS", help="rows, separated by commas")
    parser.add_argument("--mutate", metavar="ROWS", nargs="?", const="", help="as --only; all unless given")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def chosen(every: List[Row], names: str) -> List[Row]:
    """Returns the rows of these names, all that are covered unless there are names."""
    if not names:
        return [row for row in every if is_covered(row)]
    wanted = names.split(",")
    rows = [row for row in every if row["id"] in wanted]
    for name in set(wanted) - {row["id"] for row in rows}:
        raise SystemExit(f"faults.py: there is no row {name}")
    for row in rows:
        if not is_covered(row):
            raise SystemExit(f"faults.py: {row['id']} is not covered: {row['reason']}")
    return rows


def build(rows: List[Row]) -> Path:
    """Builds what rows run; returns the build's folder."""
    command = [str(ROOT / "scripts" / "build.sh"), *targets_of(rows)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build"


def main() -> int:
    """Does what the command line says."""
    options = parse_arguments()
    every = load()
    if options.check:
        return check(every)
    if options.write:
        write_page(every)
        return 0
    if options.list:
        for row in every:
            print(f"{row['id']} {row['name']}" + ("" if is_covered(row) else " (not covered)"))
        return 0
    rows = chosen(every, options.only or options.mutate or "")
    recorder = Recorder(every, options.record)
    if options.mutate is not None:
        return 1 if mutate(every, rows, recorder) else 0
    return 1 if run(rows, build(rows), recorder) else 0


if __name__ == "__main__":
    sys.exit(main())
