"""gpu_check: runs steps.py's steps, each in its time, and keeps what they found (scripts/gpu_check.sh)."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import steps as all_steps
import tables

STATE_VERSION = 1


def parse():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description="Checks and measures a device with the bundle.")
    parser.add_argument("out", help="folder of the results")
    parser.add_argument("--resume", metavar="STATE", help="state.json of an earlier call: goes on with its next step")
    parser.add_argument("--device", default=os.environ.get("AG_DEVICE", "cuda:0"))
    parser.add_argument("--models", default=",".join(all_steps.MODELS), help="names of the zoo")
    parser.add_argument("--precisions", default=",".join(all_steps.PRECISIONS))
    parser.add_argument("--only", default="", help="only steps whose name has one of these words, and the first")
    parser.add_argument("--cases", default="", help="only conformance cases whose name has one of these words")
    parser.add_argument("--step-seconds", type=float, default=240)
    parser.add_argument("--seconds", type=float, default=1e9, help="of this call; what is left is for --resume")
    parser.add_argument("--budget", type=int, default=120, help="seconds of search for one output")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of search (default: the search's own)")
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4), help="test processes at a time")
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), f"gpu-check-{os.getuid()}"))
    parser.add_argument("--bundle", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.models = [m for m in args.models.split(",") if m]
    args.precisions = [p for p in args.precisions.split(",") if p]
    args.only = [word for word in args.only.split(",") if word]
    return args


class TimeIsUp(Exception):
    pass


class Runner:
    """Runs a step's commands until its time is up; ends whole process groups."""

    def __init__(self, log):
        self.log, self.end = log, 0.0

    def is_over(self):
        return time.monotonic() >= self.end

    def __call__(self, argv, env=None, seconds=None):
        begin = time.monotonic()
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, **(env or {})}, start_new_session=True)
        except OSError as error:
            return 127, "", str(error)
        code, (out, err) = self.wait(process, min(self.end - begin, 1e9 if seconds is None else seconds))
        out, err = out.decode(errors="replace"), err.decode(errors="replace")
        ended = "its time was up" if code is None else f"exit code {code}"
        # One write a command: commands may run side by side.
        self.log.write(f"$ {' '.join(argv)}\n{out[-20000:]}{err[-20000:]}[{ended}, {time.monotonic() - begin:.1f} s]\n")
        self.log.flush()
        if code is None and seconds is None:
            raise TimeIsUp()
        return code, out, err

    @staticmethod
    def wait(process, seconds):
        """(exit code, (output, errors)); the code is None where the process had to be ended."""
        try:
            output = process.communicate(timeout=max(0.1, seconds))
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # An executor dies with its parent.
        try:
            return None, process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()


def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def load_state(args):
    if not args.resume:
        return {"version": STATE_VERSION, "device": args.device, "steps": {}, "recording": ""}
    try:
        with open(args.resume) as file:
            state = json.load(file)
        version = state["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"gpu_check.sh: {args.resume} is no state: {error}")
    if version != STATE_VERSION or state["device"] != args.device:
        sys.exit(f"gpu_check.sh: {args.resume}: expected version {STATE_VERSION} of {args.device}, got version {version} of "
                 f"{state['device']}")
    return state


def keep(args, state):
    """Everything known so far, in files that a reader can have at any time."""
    recording = os.path.join(args.out, "device.recording")
    if os.path.exists(recording):
        with open(recording) as file:
            state["recording"] = file.read()
    write(os.path.join(args.out, "state.json"), json.dumps(state))
    results = {key: value for key, value in state.items() if key != "recording"}
    write(os.path.join(args.out, "results.json"), json.dumps(results, indent=1))
    write(os.path.join(args.out, "tables.md"), tables.summary(state, args.models, args.precisions))
    write(os.path.join(args.out, "groups.md"), tables.groups(state, args.models, args.precisions))


def run_step(function, runner, seconds):
    begin = time.monotonic()
    runner.end = begin + seconds
    try:
        step = {"status": "done", "result": function()}
    except all_steps.Skip as skip:
        step = {"status": "skipped", "reason": str(skip)}
    except all_steps.Failed as failure:
        step = {"status": "failed", "reason": str(failure), "result": failure.result}
    except TimeIsUp:
        step = {"status": "failed", "reason": f"not done within {seconds:.0f} s"}
    except (OSError, ValueError, KeyError) as error:
        step = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    step["seconds"] = round(time.monotonic() - begin, 1)
    return step


def main():
    args = parse()
    os.makedirs(args.out, exist_ok=True)
    state = load_state(args)
    recording = os.path.join(args.out, "device.recording")
    if state["recording"] and not os.path.exists(recording):
        write(recording, state["recording"])
    begin = time.monotonic()
    with open(os.path.join(args.out, "log.txt"), "a") as log:
        runner = Runner(log)
        steps = all_steps.Steps(args, runner, state)
        for number, (name, function) in enumerate(steps.all()):
            again = number == 0  # The machine may be another one.
            wanted = again or not args.only or any(word in name for word in args.only)
            known = state["steps"].get(name, {}).get("status")
            # What was skipped may be possible by now.
            if not wanted or (known in ("done", "failed") and not again):
                continue
            left = args.seconds - (time.monotonic() - begin)
            if left < min(60, args.step_seconds) and not again:
                keep(args, state)
                print(f"gpu_check.sh: steps are left; go on with --resume {args.out}/state.json", flush=True)
                return 75
            log.write(f"\n== {name}\n")
            step = run_step(function, runner, min(args.step_seconds, max(left, 1)))
            state["steps"][name] = step
            print(f"{name:<40} {step['status']:<8} {step['seconds']:>6.1f} s  {step.get('reason', '')}", flush=True)
            keep(args, state)
    return 1 if any(step["status"] == "failed" for step in state["steps"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
