"""Programs on the emulated machine (PTO_FIELD_HOSTING=qemu): their kernels are compiled by `pto fw build --kernel`, and not into this process.

What KernelCompiler gives for such a kernel is a description of its source. The machine gets the kernels of one program at a time.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from pto_runtime import acl
from pto_runtime.errors import CompileError, ConfigError
from pto_runtime.headers import cache_dir

HOSTING = "qemu"
# What a description begins with: no object does.
_MAGIC = b"pto kernel of qemu\n"


def is_asked():
    """Whether programs are to run on the emulated machine."""
    # Its earlier name was virt.
    return os.environ.get("PTO_FIELD_HOSTING") in (HOSTING, "virt")


def described(source, includes, flags):
    """A kernel as bytes that `images` understands."""
    if flags:
        raise ConfigError(f"{source}: kernels for the emulated machine are compiled without flags of their own, and this one has {' '.join(flags)}")
    words = {"source": str(Path(source).resolve()), "includes": [str(Path(one).resolve()) for one in includes]}
    return _MAGIC + json.dumps(words).encode()


def _read(func_id, name, binary):
    if not binary.startswith(_MAGIC):
        raise ConfigError(
            f"kernel {func_id} ({name}) is an object of this machine: compile it with KernelCompiler.compile_incore while PTO_FIELD_HOSTING is {HOSTING}"
        )
    return json.loads(binary[len(_MAGIC) :])


def with_names(kernels):
    """The kernels as the machine has them: func id, kind of core, a name of its own, no bytes."""
    return [(func_id, kind, f"{func_id}_{name}", b"") for func_id, kind, name, _binary in kernels]


def images(kernels):
    """The files of a firmware, and of a blob with these kernels (func id, kind of core, name, bytes)."""
    command, includes = [acl.command(), "fw", "build", "--release", "--json"], {}
    for func_id, kind, name, binary in kernels:
        words = _read(func_id, name, binary)
        command += ["--kernel", f"{func_id}:{kind}:{func_id}_{name}={words['source']}:kernel_entry"]
        includes.update(dict.fromkeys(words["includes"]))
    for folder in includes:
        command += ["--kernel-include", folder]
    folder = cache_dir() / "qemu"
    folder.mkdir(parents=True, exist_ok=True)
    # Others that build kernels meanwhile write the same files.
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileError(f"{' '.join(command)}:\n{done.stderr}")
        built = {image["kind"]: Path(image["file"]) for image in json.loads(done.stdout)["images"]}
        return _kept(folder, built["qemu"]), _kept(folder, built["kernels"])


def _kept(folder, image):
    """A copy under a name by its content."""
    kept = folder / f"{hashlib.sha256(image.read_bytes()).hexdigest()[:16]}.img"
    if not kept.is_file():
        shutil.copyfile(image, kept.with_suffix(f".{os.getpid()}"))
        os.replace(kept.with_suffix(f".{os.getpid()}"), kept)
    return str(kept)
