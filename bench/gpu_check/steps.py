"""What is checked and measured, a step each: a name and a function that gives a JSON value.

A step raises Skip with the reason why it cannot be here, or Failed with what went wrong. It leaves nothing
behind that a later one cannot make again: models come from seeds, outputs by the counts of an earlier run and
the recording of its measurements.
"""
import glob
import json
import os
import re
import shutil
import sys

import cases

MODELS = ["inception_v3", "resnet50", "resnext50", "nasnet_a", "nasnet_mobile", "rnntc_sru", "bert", "squeezenet"]
PRECISIONS = ["fp32", "tf32", "fp16"]
CONFORMED = ["fp32", "tf32", "fp16", "bf16"]
# Each kind of kernel once; under the sanitizer a case takes seconds.
COUNTS = ("rounds", "expansions", "graphs", "candidates")  # Of a search; a replay takes them as limits.
SANITIZED = ["relu", "conv_1x1", "conv_dilated", "conv_depthwise", "depthwise_pointwise", "conv_residual_relu", "matmul_batched", "dense_bias_gelu",
             "softmax_last", "layer_norm", "reduce_mean_pooling", "max_pool", "concat_channels", "chain", "inception"]


class Skip(Exception):
    pass


class Failed(Exception):
    """What went wrong, and what is known all the same."""

    def __init__(self, reason, result=None):
        super().__init__(reason)
        self.result = result


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


class Steps:
    """`run(argv, env, seconds)` runs a command within the step's time and gives (code, output, errors); with `seconds`
    the code is None where they, or the step's, were up."""

    def __init__(self, args, run, state):
        self.args, self.run, self.state = args, run, state
        self.binary = os.path.join(args.bundle, "bin", "autograph")
        self.is_gpu = args.device.startswith("cuda")
        self.in_tests = args.device.replace(":", "_")  # As test names have it.
        self.work = os.path.join(args.work, args.device.replace(":", ""))
        self.data = os.path.join(self.work, "data")
        os.makedirs(self.work, exist_ok=True)
        # What PyTorch has in its process, so that plans are made and run with one version of each library.
        folders = [folder for path in sys.path for folder in glob.glob(os.path.join(path, "nvidia", "*", "lib"))]
        if folders:
            os.environ.setdefault("AUTOGRAPH_CUDA_PATH", ":".join(folders))

    def all(self):
        """(name, function), in order: what everything rests on first, then model by model."""
        steps = [("machine", self.machine)]
        if self.is_gpu:
            steps.append(("facts", self.facts))
        steps.append(("limits", self.limits))
        steps += [(f"conformance {p}", lambda p=p: self.conformance(p)) for p in CONFORMED]
        if self.is_gpu:
            steps += [(f"sanitizer {tool}", lambda t=tool: self.sanitizer(t)) for tool in ("memcheck", "racecheck")]
        for model in self.args.models:
            for precision in self.args.precisions:
                about = f"{model} {precision}"
                steps += [(f"one stream {about}", lambda m=model, p=precision: self.optimize(m, p, "one stream")),
                          (f"best {about}", lambda m=model, p=precision: self.optimize(m, p, "best"))]
                steps += [(f"peers {sides} {about}", lambda m=model, p=precision, s=sides: self.peers(m, p, s))
                          for sides in ("eager,graph,ort", "compile", "compile-tuned", "jax")]
        return steps

    # --- What the steps share

    def autograph(self, *words, may_fail=False):
        code, out, err = self.run([self.binary, *words, "--data", self.data])
        if code and not may_fail:
            raise Failed(f"autograph {words[0]}: {last_line(err)}")
        return out

    def need_device(self):
        """Skips where the device cannot be opened, with the program's own words."""
        if self.state.get("device_reason"):
            raise Skip(self.state["device_reason"])

    def test(self, name):
        path = os.path.join(self.args.bundle, "test", name)
        if not os.path.exists(path):
            raise Skip(f"the bundle has no {name}")
        return path

    def run_tests(self, program, pattern, before=()):
        """Runs the tests of a name's pattern, many at a time; the counts, and what each that failed said."""
        path = self.test(program)
        code, out, err = self.run([path, "--gtest_list_tests", f"--gtest_filter={pattern}"])
        if code:
            raise Failed(f"{program} ended with {code}: {last_line(out + err)}")
        names = cases.list_names(out)
        if not names:
            raise Skip(f"{program} has no test of {pattern}")

        def run_chunk(chunk):
            code, out, err = self.run([*before, path, f"--gtest_filter={':'.join(chunk)}"], seconds=cases.CHUNK_SECONDS)
            return cases.Chunk(code, out + err, is_over=code is None and self.run.is_over())
        result = cases.Cases(run_chunk, names, self.args.jobs).run()
        ran = result["passed"] + result["skipped"] + len(result["failed"])
        if result["failed"]:
            name, message = next(iter(result["failed"].items()))
            raise Failed(f"{len(result['failed'])} of {ran} failed, {result['not_run']} did not run; {name}: {message[:200]}", result)
        if result["not_run"]:
            raise Failed(f"{result['not_run']} of {len(names)} did not run in time", result)
        return result

    def model(self, name):
        path = os.path.join(self.work, f"{name}.onnx")
        if not os.path.exists(path):
            self.autograph("zoo", name, "-o", path + ".new")
            os.rename(path + ".new", path)
        return path

    def output(self, name, precision, kind):
        return os.path.join(self.work, f"{name}.{precision}.{kind.replace(' ', '_')}.onnx")

    # --- The steps

    def machine(self):
        facts = {"python": sys.version.split()[0], "autograph": self.autograph("--version").strip(),
                 "cpus": os.cpu_count()}
        code, out, _ = self.run(["uname", "-sr"])
        facts["system"] = out.strip()
        if self.is_gpu and shutil.which("nvidia-smi"):
            query = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,compute_mode,mig.mode.current"
            code, out, err = self.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv"])
            facts["nvidia_smi"] = (out or err).strip()
        for library in ("torch", "jax", "onnxruntime"):
            code, out, _ = self.run([sys.executable, "-c", f"import {library}; print({library}.__version__)"])
            facts[library] = out.strip() if code == 0 else None
        doctor = json.loads(self.autograph("doctor", "--device", self.args.device, "--json", may_fail=True) or "{}")
        facts["doctor"] = doctor.get("checks", [])
        broken = [check["message"] for check in facts["doctor"] if not check["ok"]]
        self.state["device_reason"] = broken[0] if broken else ""
        # A machine without a GPU is none to check on; one with a GPU that we cannot use is a finding.
        if broken and (not self.is_gpu or self.has_gpu()):
            raise Failed(broken[0])
        return facts

    def has_gpu(self):
        return os.path.exists("/dev/nvidia0") or self.run(["nvidia-smi", "-L"])[0] == 0

    def conformance(self, precision):
        self.need_device()
        names = [f"*/{self.in_tests}_{precision}_*{case}*" for case in self.args.cases.split(",")]
        return self.run_tests("device_conformance_test", ":".join(names))

    def facts(self):
        """What estimates assume: gaps between kernels, forks, bandwidths, rates (bench/gpu_facts.cc)."""
        self.need_device()
        folders = f"{os.environ.get('AUTOGRAPH_CUDA_PATH', '')}:/usr/local/cuda/lib64"
        code, out, err = self.run([self.test("gpu_facts"), self.args.device.split(":")[1]], {"LD_LIBRARY_PATH": folders})
        if code:
            raise Failed(last_line(err))
        return json.loads(out)

    def sanitizer(self, tool):
        self.need_device()
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            raise Skip("no compute-sanitizer here")
        names = ":".join(f"*.Kernels/{self.in_tests}_*_{name}" for name in SANITIZED)
        return self.run_tests("device_conformance_test", names, before=[program, f"--tool={tool}", "--error-exitcode=9"])

    def limits(self):
        self.need_device()
        code, out, err = self.run([sys.executable, os.path.join(self.args.bundle, "peers", "peers.py"), "--device",
                                   "cuda" if self.is_gpu else "cpu"])
        if code:
            raise (Skip if code == 77 else Failed)(last_line(err))
        return json.loads(last_line(out))

    def optimize(self, name, precision, kind, counts=None):
        """`counts`: the result of an earlier search, which goes no further this time."""
        self.need_device()
        if precision != "fp32" and not self.is_gpu:
            raise Skip(f"{self.args.device} has no {precision}")
        model, output = self.model(name), self.output(name, precision, kind)
        recording, report = os.path.join(self.args.out, "device.recording"), output + ".json"
        if os.path.exists(recording):
            self.autograph("cache", "import", recording)
        words = ["--streams", "1"] if kind == "one stream" else []
        if counts:
            for flag in COUNTS:
                words += [f"--{flag}", str(max(1, counts[flag]))]
        elif self.args.rounds:
            words += ["--rounds", str(self.args.rounds)]
        job = json.loads(self.autograph(
            "optimize", model, "-o", output, "--device", self.args.device, "--precision", precision, "--budget",
            f"{self.args.budget}s", "--report", report, "--ort", "off", "--json", *words))
        self.autograph("cache", "export", recording, "--device", self.args.device)
        keep = ("verdict", "environment", "input_latency", "output_latency", "unfused_latency", "speedup",
                "speedup_low", "speedup_high", "over_tuned_input", "errors", "rewrites", "groups", "streams", "stop_reason", *COUNTS,
                "seconds", "cache", "warnings")
        kept = {key: job["result"].get(key) for key in keep}
        with open(report) as file:
            facts = json.load(file)
        kept["plan"], kept["kernels"] = facts["output_plan"], facts["output_kernels"]
        return kept

    def outputs(self, name, precision):
        """NAME=FILE of our outputs, made again by an earlier run's counts where the machine is a new one."""
        words = []
        for kind in ("one stream", "best"):
            done = self.state["steps"].get(f"{kind} {name} {precision}", {})
            if done.get("status") != "done":
                continue
            path = self.output(name, precision, kind)
            if not os.path.exists(path):
                self.optimize(name, precision, kind, done["result"])
            words += ["--ours", f"{kind}={path}"]
        return words

    def peers(self, name, precision, sides):
        self.need_device()
        if precision != "fp32" and not self.is_gpu:
            raise Skip(f"{self.args.device} has no {precision}")
        limits = self.state["steps"].get("limits", {}).get("result")
        words = self.outputs(name, precision)
        if limits:
            path = os.path.join(self.work, "limits.json")
            with open(path, "w") as file:
                json.dump(limits, file)
            words += ["--machine", path]
        table = os.path.join(self.work, "peers.json")
        code, out, err = self.run(
            [sys.executable, os.path.join(self.args.bundle, "peers", "peers.py"), "--device",
             "cuda" if self.is_gpu else "cpu", "--our-device", self.args.device, "--precision", precision, "--sides", sides,
             "--blocks", str(self.args.blocks), "--json", table, *words, self.model(name)],
            {"AUTOGRAPH": self.binary, "AUTOGRAPH_LIBRARY": os.path.join(self.args.bundle, "lib", "libautograph.so"),
             "AUTOGRAPH_PYTHON_PACKAGE": os.path.join(self.args.bundle, "python", "autograph")})
        if code == 77:
            raise Skip(last_line(err))
        if code:
            raise Failed(last_line(err))
        with open(table) as file:
            result = json.load(file)
        reasons = [row["reason"] for side, row in result["rows"].items() if side in sides.split(",") and "reason" in row]
        if len(reasons) == len(sides.split(",")):
            raise Skip(re.sub(r"\s+", " ", reasons[0]))
        return result
