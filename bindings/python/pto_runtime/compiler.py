"""Sources in C++ become shared or relocatable objects; kept by content."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import CompileError, ConfigError
from .headers import cache_dir, include_dir, write_whole

FLAGS = ["-std=c++17", "-O2", "-fPIC", "-Wall", "-Wextra"]
# What kernels are written with: address spaces and core functions mean nothing on the simulator.
KERNEL_FLAGS = ["-D__gm__=", "-D__aicore__=", "-D__global__=", "-Wno-unknown-pragmas", "-Wno-attributes"]


class Compiler:
    """A C++ compiler with its cache: $CXX, else c++; $CXXFLAGS are added. `hits` and `misses` count what was taken from the
    cache and what was compiled."""

    def __init__(self, program=None, log=None):
        name = program or os.environ.get("CXX") or "c++"
        self.program = shutil.which(name)
        if self.program is None:
            raise ConfigError(f"there is no C++ compiler {name!r}: install one (Debian: g++), or set CXX")
        self.log = log or (lambda text: None)
        self.flags = [*FLAGS, *shlex.split(os.environ.get("CXXFLAGS", ""))]
        self.version = self._run(["--version"], "the compiler").stdout
        self.hits = self.misses = 0

    def _run(self, arguments, source):
        try:
            done = subprocess.run([self.program, *arguments], capture_output=True, check=False)
        except OSError as error:
            raise CompileError(f"{self.program} cannot be started: {error}") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").rstrip()
            line = " ".join([self.program, *map(str, arguments)])
            raise CompileError(f"{source} does not compile:\n{said}\nThe command was: {line}")
        return done

    def _compile(self, source, flags, link, suffix):
        source = Path(source)
        # The preprocessed text has every header in it.
        text = self._run([*flags, "-E", str(source)], source).stdout
        digest = hashlib.sha256()
        for part in (self.version, text, " ".join(map(str, [*flags, *link])).encode(), suffix.encode()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        kept = cache_dir() / "objects" / f"{source.stem}-{digest.hexdigest()[:32]}{suffix}"
        if kept.is_file():
            self.hits += 1
            self.log(f"{source}: compiled before")
            return kept
        self.misses += 1
        self.log(f"{source}: compiling")
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / f"made{suffix}"
            said = self._run([*flags, *link, str(source), "-o", str(made)], source).stderr
            if said:
                self.log(said.decode(errors="replace").rstrip())
            write_whole(kept, made.read_bytes())
        return kept

    def _includes(self, source, folder):
        return ["-I", str(include_dir()), "-I", str(Path(source).parent), "-I", str(folder)]

    def shared(self, source, folder):
        """An orchestration or a builder plugin as a shared object."""
        return self._compile(source, [*self.flags, *self._includes(source, folder)], ["-shared"], ".so")

    def kernel(self, source, folder, form="shared"):
        """A kernel as a shared or as a relocatable object."""
        flags = [*self.flags, *KERNEL_FLAGS, *self._includes(source, folder)]
        root = os.environ.get("PTO_ISA_ROOT")
        if root:
            include = Path(root) / "include"
            if not include.is_dir():
                raise ConfigError(f"PTO_ISA_ROOT is {root!r}, and there is no folder {include}")
            flags += ["-D__CPU_SIM", "-I", str(include)]
        if form == "relocatable":
            return self._compile(source, [*flags, "-fno-exceptions"], ["-c"], ".o")
        return self._compile(source, flags, ["-shared"], ".so")
