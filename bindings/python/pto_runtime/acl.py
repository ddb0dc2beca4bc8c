"""Programs that call the CANN interface, from Python: each runs in a process of its own, on our devices.

    from pto_runtime import acl

    acl.run([sys.executable, "app.py"])   # onnxruntime-cann finds libascendcl.so, libfmk_onnx_parser.so and libacl_op_compiler.so
"""

import os
import shutil
import subprocess

from .errors import ConfigError


def command():
    """The command `pto`: what PTO_COMMAND names, or else the one in PATH."""
    asked = os.environ.get("PTO_COMMAND", "pto")
    found = shutil.which(asked)
    if found is None:
        raise ConfigError(f"there is no command {asked}: put it into PATH, or set PTO_COMMAND")
    return found


def run(program, *, device=None, devices=None, virtual=False, seed=None, check=False, trace=None, **options):
    """Runs a program and its arguments on the devices of the CANN interface, as `pto compat cann run` does; a subprocess.CompletedProcess.

    device: a2a3sim, qemu or a2a3; devices: how many the program sees; virtual: in virtual time, with this seed; check: misuse is reported on standard error;
    trace: a file for a timeline. Further options are those of subprocess.run. Raises ConfigError where there is no command `pto`.
    """
    words = [command(), "compat", "cann", "run"]
    for name, value in (("device", device), ("devices", devices), ("seed", seed), ("trace", trace)):
        words += [f"--{name}", str(value)] if value is not None else []
    words += ["--virtual"] * virtual + ["--check"] * check
    return subprocess.run([*words, "--", *map(str, program)], **options)
