"""Runs the tests of a package that calls CANN on our device, and counts how they end.

    python package_tests.py FOLDER [--cases 12] [--seconds 60] [--minutes 20] [--processes 2] [--only WORD]

Of the cases of a parametrised test at most `--cases` are run, evenly chosen. A test has `--seconds`, and all together have `--minutes`. Each file has a process
of its own; a test that ends it is counted, and another process goes on behind it. pytest loads this file as its plugin, too."""

import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ENDS = ("passed", "failed", "skipped", "ended")
# Parts of processors with which NumPy's functions of half precision are a step off the nearest number.
INEXACT = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
# Where the log stood when a test began.
START = {"log": 0}

# Why a test does not pass: how that is counted, a pattern of its name (the first line) and its message, and the sentence for the table; the first that fits counts.
# `cannot`: no device of ours can make it pass, because the package lacks the part, or needs another library for it. `package`: the package is wrong, and
# would be so on any device; each sentence names the fault in its source. What fits nothing is counted as failed for a reason that nobody has looked at.
UNKNOWN = "for a reason that nobody has looked at"
KINDS = [
    ("package", r"aclop_Scatter.*not supplied", "a scatter names no axis: an exception in C++ leaves a function that the package calls as one that throws none (`ScatterAxis`)"),
    ("package", r"GetScalarArg: required|Cannot convert (NaN|infinity)|terminate called", "an exception in C++ leaves a function that the package calls as one that throws none"),
    ("package", r"Fatal Python error: Segmentation fault.*(launch_host_func|add_callback|test_create_with_flags)", "the package reads the message of an error of its own, for which the interface has none (`aclGetRecentErrMsg` gives null)"),
    ("cannot", r"no implementation registered|RawKernel|RawModule|nvrtc|NVRTC|_fusion_trace|_fusion_kernel|jitify|compile_with_cache", "a kernel in source, which the vendor's compiler compiles"),
    ("cannot", r"cufft|ops-fft|FFT support", "the vendor's library of Fourier transforms (`libcann_ops_fft.so`)"),
    ("cannot", r"cublas|cusolver|cusparse|curand|cutensor|import name '?_?nccl|cub_|_cub\b|CUDADriverError", "a library of CUDA"),
    ("cannot", r"^.*test_install_library", "a library of CUDA"),
    ("cannot", r"^.*example_tests", "a kernel in source, which the vendor's compiler compiles"),
    ("cannot", r"CPU fallback|DISABLE_CPU_FALLBACK|cpu_fallback", "the package computes it with NumPy on the processor"),
    ("cannot", r"No such file or directory", "a source file of the package that is not in the wheel"),
    ("cannot", r"not defined for complex numbers|is complex, and ", "an operator that the interface has for real numbers alone"),
    ("failed", r"Timeout \(>", "it takes longer than a test has"),
    ("cannot", r"aclrtMalloc: device \d+ has|Unable to allocate", "more memory than the run gives a device"),
    ("package", r"'numpy' has no attribute 'issubtype'|UnboundLocalError|RecursionError|'NoneType' object|'bool' object is not iterable|truth value of an array|int\(\) argument", "a mistake in the package's Python: a name that is not there, a call of itself without end, a truth value as a list"),
    ("cannot", r"No module named|cannot import name|has no attribute|_UnavailableModule", "a module or a function that the package does not have"),
    ("cannot", r"not supported on (the )?(Ascend|ASCEND)|ASCEND:|not supported yet|does not support|Unsupported (dtype|type)|NotImplementedError|MallocManaged", "the package says that it does not support it on this device"),
    ("package", r"without ACL_EVENT_SYNC", "an event is made without the flag for streams that wait for it"),
    ("package", r"does not match with the current device", "a stream of one device is used on another"),
    ("package", r"^.*divmod", "`divmod` divides a number by itself (`aclop_Divmod`)"),
    ("package", r"^.*_lcm", "`lcm` takes the divisor of the product instead of that of the operands (`aclop_Lcm`)"),
    ("package", r"^.*TestPiecewise", "`piecewise` knows its last condition alone"),
    ("package", r"aclnn(Inplace)?Scatter(Add|Update)|^.*(test_scatter|adv_setitem|SetitemDifferent|[Pp]ut_?[Aa]long_?[Aa]xis)", "a scatter guesses its axis from extents, and its indices have other extents than its values (`ScatterAxis`)"),
    ("package", r"^.*(TestPlace|TestPut_|TestPutmask|putmask)", "an array that is changed in part is replaced by an empty one where its type is promoted (`_promote_io_dtype`)"),
    ("package", r"^.*(where|[iI]s_?[cC]lose|[aA]llclose|nan_ops_match|copysign|reciprocal)", "a temporary tensor has strides scaled by the ratio of two element sizes, although strides count elements (`aclTensorLike`)"),
    ("package", r"^.*(test_invert|test_abs_zerodim|test_casting|both_raise|Int\w*Op::\w*mod|clip|[tT]ri[ul]_?[iI]ndices|unwrap|right_shift|large_int)", "`bool` and narrow integers are computed as `int32`, and operands in their own types instead of that of the loop (`_promote_io_dtype`)"),
    ("package", r"^.*([pP]oly1d|polyval|[cC]onvolve|[cC]orrelate)", "sums of integers are computed as floats, and do not wrap"),
    ("package", r"^.*test_f(max|min)", "`fmax` and `fmin` are computed as `maximum` and `minimum`, which give NaN"),
    ("package", r"^.*TestMisc::test_interp", "an interpolation is computed in half precision, and by NumPy in `f64`"),
    ("package", r"^.*test_columnar_slice", "`flat` of a view is that of a copy"),
    ("package", r"F_CONTIGUOUS|\.[fc]_contiguous|^.*non_contiguous_array", "the package keeps no Fortran order"),
    ("package", r"cupy_r.shape == numpy_r.shape|shape mismatch|out has the extents", "an output is made with other extents than NumPy's, or axes but the first are left out"),
    ("package", r"different dtypes are returned", "an array has another type than NumPy's"),
    ("package", r"^tests/ascend/", "a test of the package's own parts, which they do not fit"),
    ("failed", r"^.*goodness_of_fit", "a test of a distribution, which fails by chance in one run of seven"),
    ("failed", r"^.*test_polycompanion_trailing", "a quotient of complex numbers of single precision: here it is rounded once"),
    ("package", r"Implicit conversion|first operand must be array|has incorrect type", "a function that is left to NumPy gets an array of the device"),
    ("package", r"DID NOT (RAISE|WARN)|not raised|Only (cupy|numpy) raises|assert False|assert None|Different exceptions|Only one of", "an exception, a warning or an answer that the test wants is not there"),
]


# What pytest calls.
def pytest_collection(session):
    # The package's own `conftest.py` leaves out files that are for CUDA alone, which pytest does not ask for a file that is named.
    path = Path(session.config.args[0]).resolve()
    if session.gethookproxy(path.parent).pytest_ignore_collect(collection_path=path, config=session.config):
        write("left out", session.config.args[0])
        session.config.args[:] = []
        raise session.Interrupted("the package leaves this file out")


def pytest_collection_modifyitems(items):
    most, ended = int(os.environ["PTO_CASES"]), set(read_ended())
    groups = collections.OrderedDict()
    for item in items:
        name = re.sub(r"_param_\d+_\{.*?\}(?=::|$)", "", item.nodeid.split("[")[0])
        groups.setdefault(name, []).append(item)
    kept = [item for group in groups.values() for item in group[:: max(1, -(-len(group) // most))]]
    if not ended:
        write("collected", len(items), len(groups), len(kept))
    items[:] = [item for item in kept if item.nodeid not in ended]


def pytest_collectreport(report):
    if report.failed:
        write("unloaded", report.nodeid, message(report))


def pytest_runtest_logstart(nodeid, location):
    sys.stderr.flush()
    START["log"] = os.path.getsize(os.environ["PTO_LOG"])
    write("start", nodeid)


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    text = message(report) if report.outcome == "failed" else ""
    write(report.outcome, report.nodeid, text, f"{report.duration:.3f}")


def message(report):
    """What a report says, and what libraries wrote to the log meanwhile."""
    with open(os.environ["PTO_LOG"], encoding="utf-8", errors="replace") as log:
        log.seek(START["log"])
        return f"{str(report.longrepr)[-3000:]} <log> {log.read()[-3000:]}"


def write(*words, to=None):
    with open(to or os.environ["PTO_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write("\t".join(re.sub(r"\s+", " ", str(word)) for word in words) + "\n")


def lines_of(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8", errors="replace").splitlines()] if path.exists() else []


def read_ended():
    return [line[1] for line in lines_of(Path(os.environ["PTO_OUTCOMES"])) if line[0] in ENDS]


def run_file(path, folder, options):
    """Runs a file, again behind each test that ends the process. What became of its tests is in a file, too."""
    outcomes = Path(options.outcomes) / (path.replace("/", "_").removesuffix(".py") + ".txt")
    outcomes.unlink(missing_ok=True)
    log = outcomes.with_suffix(".log")
    environment = dict(os.environ, PTO_OUTCOMES=str(outcomes), PTO_LOG=str(log), PTO_CASES=str(options.cases), PYTHONPATH=str(Path(__file__).parent),
                       CUPY_ASCEND_DISABLE_CPU_FALLBACK="1", PYTHONDONTWRITEBYTECODE="1", NPY_DISABLE_CPU_FEATURES=INEXACT)
    # Python's own output alone is captured: what a library writes before it ends the process stands in the log.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "package_tests", "-p", "no:cacheprovider", "--tb=native", "--continue-on-collection-errors",
               "--capture=sys", f"--timeout={options.seconds}", path]
    while time.monotonic() < options.end:
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
            code = wait(process, outcomes, options)
        lines = lines_of(outcomes)
        if code in (0, 1, 2, 5) or code is None:
            break
        ended = {line[1] for line in lines if line[0] in ENDS}
        left = [line[1] for line in lines if line[0] == "start" and line[1] not in ended]
        said = log.read_text(encoding="utf-8", errors="replace")
        said = "\n".join(re.findall(r"terminate called.*|.*what\(\).*|Fatal Python error.*|Current thread.*\n.*", said)) or said[-3000:]
        if not left:
            # It ended behind its last test, or before the first one.
            write("unfinished", path, f"{how(code)} {said}", to=outcomes)
            break
        write("ended", left[-1], f"{how(code)} {said}", "0", to=outcomes)
    return outcomes


def how(code):
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def wait(process, outcomes, options):
    """The code of a process; one that is silent is killed, and so is one for which there is no time (`None`)."""
    size, since = -1, time.monotonic()
    while True:
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            now, written = time.monotonic(), outcomes.stat().st_size if outcomes.exists() else 0
            if written != size:
                size, since = written, now
            if now > options.end or now - since > 4 * options.seconds:
                process.kill()
                code = process.wait()
                return None if now > options.end else code


OUTCOMES = ["passed", "package", "failed", "cannot", "skipped", "ended"]


def kind_of(text):
    return next(((group, sentence) for group, words, sentence in KINDS if re.search(words, text)), ("failed", UNKNOWN))


class Count(collections.Counter):
    """How tests ended."""


def folder_of(path):
    parts = Path(path.split("::")[0]).parts
    return "/".join(parts[1:3]) if len(parts) > 3 else "/".join(parts[1:2])


def counted(outcomes):
    """Counts by folder; and for each test that did not pass its name, how it is counted, why, and its message."""
    groups, whys = collections.defaultdict(Count), []
    for path, file in outcomes:
        own, ends, lines = groups[folder_of(path)], {}, lines_of(file)
        own["files"] += 1
        if not lines:
            own["files without time"] += 1
        for line in lines:
            text = line[2] if len(line) > 2 else ""
            if line[0] == "collected":
                own.update(cases=int(line[1]), functions=int(line[2]), chosen=int(line[3]))
            elif line[0] in ("left out", "unloaded", "unfinished"):
                own[f"files {line[0]}"] += 1
                whys.append((line[1], line[0], kind_of(text)[1] if line[0] == "unloaded" else "the file", text))
            elif line[0] in ENDS and ends.get(line[1], ("",))[0] not in ("failed", "ended"):
                ends[line[1]] = (line[0], text)
        for test, (outcome, text) in ends.items():
            if outcome in ("failed", "ended"):
                group, sentence = kind_of(f"{test}\n{text}")
                outcome = "ended" if outcome == "ended" else group
                whys.append((test, outcome, sentence, text))
            own[outcome] += 1
        own["not run"] += max(0, own["chosen"] - sum(own[outcome] for outcome in OUTCOMES) - own["not run"])
    return groups, whys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--outcomes", default="outcomes")
    options = parser.parse_args()
    folder = Path(options.folder).resolve()
    options.outcomes = str(Path(options.outcomes).resolve())
    Path(options.outcomes).mkdir(exist_ok=True)
    options.end = time.monotonic() + 60 * options.minutes
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py") if re.search(options.only, str(path)))
    # Files of all folders come early, so that a run that is cut off has seen some of each.
    files = [path for first in range(8) for path in files[first::8]]
    with ThreadPoolExecutor(options.processes) as pool:
        jobs = [pool.submit(run_file, path, folder, options) for path in files]
        for at, job in enumerate(jobs):
            job.result()
            print(f"\r{at + 1} of {len(jobs)} files", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    groups, whys = counted([(f"tests/{path}", job.result()) for path, job in zip(files, jobs)])
    with open(Path(options.outcomes) / "whys.tsv", "w", encoding="utf-8") as file:
        file.writelines("\t".join(why) + "\n" for why in whys)
    total = sum(groups.values(), Count())
    columns = ["files", "functions", *OUTCOMES]
    print("| tests | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for group, count in [*sorted(groups.items()), ("all", total)]:
        print(f"| {group} | " + " | ".join(f"{count[column]:,}" for column in columns) + " |")
    for outcome in ["package", "failed", "ended", "cannot", "unloaded", "unfinished"]:
        for kind, number in collections.Counter(kind for _, of, kind, _ in whys if of == outcome).most_common():
            print(f"{outcome}: {number:,}: {kind}")
    print(f"files: {total['files']}, of which the package leaves out {total['files left out']}, {total['files unloaded']} cannot be loaded, and {total['files without time']} had no time")
    print(f"package tests: {total['functions']:,} functions with {total['cases']:,} cases, of which {total['chosen']:,} were chosen: {total['passed']:,} passed, {total['package']:,} fail because of the package, "
          f"{total['failed']:,} fail, {total['cannot']:,} cannot pass, {total['skipped']:,} skipped, {total['ended']:,} end the process, and for {total['not run']:,} there was no time")


if __name__ == "__main__":
    main()
