"""Compiles kernels and orchestrations for the simulator. What was compiled before is taken from the cache."""

import contextlib
import os
import shutil
from pathlib import Path

from pto_runtime.errors import CompileError, ConfigError
from pto_runtime.headers import field_include_dir

from simpler import qemu_machine

from . import vintages
from .compile_cache import CompileCache
from .platform_info import parse_platform

_ORCHESTRATION = ["-shared", "-fPIC", "-O2", "-std=c++17", "-fno-gnu-unique", "-w"]
_PRELUDE = ["-include", "pto_field_prelude.h"]
_KERNEL = ["-fPIC", "-O2", "-w", "-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1", "-DNDEBUG"]
# libc++ does not name the type of brain floats yet: our header `stdfloat` does.
_CLANG = ["-stdlib=libc++", "-D__STDCPP_BFLOAT16_T__=1", "-I", str(Path(__file__).parent / "include")]
# Before PTO-ISA: our header reports tile instructions to the runtime, and lets barriers act.
_TILES = Path(__file__).parent / "tiles"
_CORE_DEFINES = {"aic": "-D__DAV_CUBE__", "aiv": "-D__DAV_VEC__"}
# The second one is how programs for both architectures ask which one this is: by the guard of a header.
_A5_STREAMING = ["-DPTO_FIELD_A5=1", "-DSRC_A5_RUNTIME_TENSORMAP_AND_RINGBUFFER_RUNTIME_PTO_TYPES_H_"]
_CLANGS = ("clang++-19", "clang++-20", "clang++-18", "clang++")
_CACHE = CompileCache()


class KernelObject(bytes):
    """The bytes of a kernel's shared object, with the core that it was compiled for and its source's name."""

    core_type: str
    name: str


def _program(variable, names, package):
    asked = os.environ.get(variable)
    for name in [asked] if asked else names:
        if found := shutil.which(name):
            return found
    raise ConfigError(f"there is no compiler {asked or names[0]}: install Debian's {package}, or set {variable}")


class KernelCompiler:
    """Compiles for one platform. PTO_FIELD_KERNEL_CXX names another compiler for kernels, CXX one for orchestrations."""

    def __init__(self, platform="a2a3sim"):
        self.platform = platform
        self.architecture, variant = parse_platform(platform)
        if variant != "sim":
            raise ConfigError(f"kernels of {platform!r} need the vendor's compiler: use {self.architecture}sim here")

    @property
    def project_root(self):
        """The folder of our headers. Programs look below it for folders of theirs, which need not be there."""
        return Path(field_include_dir())

    @property
    def cache(self):
        """What was compiled and what was kept."""
        return _CACHE

    def get_orchestration_include_dirs(self, runtime_name):
        """The folders with the headers of the interface."""
        return [str(field_include_dir())]

    def compile_orchestration(self, runtime_name, source_path, extra_include_dirs=None, flags=()):
        """An orchestration as the bytes of a shared object."""
        program = _program("CXX", ("g++", "c++"), "g++")
        folders = [Path(source_path).parent, *self.get_orchestration_include_dirs(runtime_name), *(extra_include_dirs or ())]
        # There the number of blocks has another name.
        is_a5_streaming = (self.architecture, runtime_name) == ("a5", "tensormap_and_ringbuffer")
        source = Path(source_path).read_text(errors="replace")
        flags = (*flags, *vintages.flags_of(source))
        defines = [*(_A5_STREAMING if is_a5_streaming else ["-DPTO_FIELD_A5=0"]), *flags]
        try:
            return _CACHE.compiled(program, [*_ORCHESTRATION, *defines, *_includes(folders)], source_path)
        except CompileError as error:
            if renamed := vintages.renamed(source):
                raise CompileError("\n".join([str(error), "Names of earlier months in it:", *renamed])) from error
            raise

    def compile_incore(self, source_path, core_type="aiv", pto_isa_root=None, extra_include_dirs=None, flags=()):
        """A kernel for one kind of core as the bytes of a shared object."""
        if core_type not in _CORE_DEFINES:
            raise ValueError(f"core_type {core_type!r} of {source_path}: use 'aic' or 'aiv'")
        own = [field_include_dir(), Path(source_path).parent, *(extra_include_dirs or ())]
        if qemu_machine.is_asked():
            made = KernelObject(qemu_machine.described(source_path, own[1:], flags))
            made.core_type, made.name = core_type, Path(source_path).stem
            return made
        flags = [*_KERNEL, _CORE_DEFINES[core_type], *flags]
        if pto_isa_root is None:
            program = _program("CXX", ("g++", "c++"), "g++")
            binary = _CACHE.compiled(program, ["-shared", *flags, "-std=c++20", *_PRELUDE, *_includes(own)], source_path)
        else:
            include = Path(pto_isa_root) / "include"
            binary = _with_tiles(flags, [_TILES, include, include / "pto", field_include_dir()], own, source_path)
        made = KernelObject(binary)
        made.core_type, made.name = core_type, Path(source_path).stem
        return made


def _with_tiles(flags, shared, own, source):
    """Compiles a kernel that includes PTO-ISA, whose headers take longest: they are precompiled, where the compiler is clang."""
    program = _program("PTO_FIELD_KERNEL_CXX", _CLANGS, "clang-19 with libc++-19-dev and libc++abi-19-dev")
    is_clang = "clang" in Path(program).name
    flags = [*flags, "-std=c++23", *(_CLANG if is_clang else [])]
    if is_clang and "pto/pto-inst.hpp" in Path(source).read_text(errors="replace"):
        header = _CACHE.precompiled(program, [*flags, *_includes(shared)], ('"pto_field_prelude.h"', "<pto/pto-inst.hpp>"))
        with contextlib.suppress(CompileError):
            return _CACHE.compiled(program, ["-shared", *flags, "-include-pch", header, *_includes([*shared, *own])], source)
        # It may want to define things before the headers: without the precompiled ones the error is the program's own.
    return _CACHE.compiled(program, ["-shared", *flags, *_PRELUDE, *_includes([*shared, *own])], source)


def _includes(folders):
    return [word for folder in dict.fromkeys(map(str, folders)) for word in ("-I", folder)]

