"""Kernels whose bodies are C++: compiled by the compiler of this machine, and called when a task runs.

The shim headers in `include/` have what such bodies use. Their memory accesses are not checked; the tile of each argument is in
its tensor when the body is called."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from pto_runtime import _native

from .errors import KernelError

INCLUDE = Path(__file__).parent / "include"


@dataclass(frozen=True)
class CppSource:
    """A body (`is_unit` false) or a whole translation unit."""

    text: str
    includes: tuple[str, ...]
    is_unit: bool

    @classmethod
    def of(
        cls, body: Optional[str], body_path: Optional[str], unit_path: Optional[str], includes: tuple[str, ...]
    ) -> Optional[CppSource]:
        """The source of a kernel, which has at most one."""
        given = [one for one in (body, body_path, unit_path) if one is not None]
        if len(given) > 1:
            raise ValueError("A kernel has one source: cpp_src, cpp_body_path or cpp_tu_path.")
        if not given:
            return None
        text = body if body is not None else Path(given[0]).read_text(encoding="utf-8")
        return cls(text, includes, unit_path is not None)

    def function(self, name: str) -> str:
        """The function of the kernel with this name: of a body one that no library has."""
        return name if self.is_unit else f"pto_wsp_kernel_{name}"

    def unit(self, name: str) -> str:
        """The translation unit of the kernel with this name."""
        if self.is_unit:
            return self.text
        lines = ['#include "pto/wsp/codegen/abi/kernel_abi.hpp"', '#include "pto/wsp/codegen/abi/ptoisa_bridge.hpp"']
        lines += [f"#include {one if one[0] in '<' + chr(34) else chr(34) + one + chr(34)}" for one in self.includes]
        lines += [
            "",
            "// Custom kernel (Path A): the body is the user's.",
            f'extern "C" PTO_WSP_KERNEL_ATTR uint64_t {self.function(name)}(const KernelTaskDesc* task, CSPTContext* cspt) {{',
            "  (void)task;",
            "  (void)cspt;",
            "  uint64_t cycles = 0;",
            "  (void)cycles;",
            self.text,
            "  return cycles;",
            "}",
            "",
        ]
        return "\n".join(lines)


class _Task(ctypes.Structure):
    """`KernelTaskDesc` of the shim header."""

    _fields_ = [
        ("kernel_id", ctypes.c_uint32),
        ("task_id", ctypes.c_uint32),
        ("num_args", ctypes.c_uint32),
        ("num_axis_args", ctypes.c_uint32),
        ("num_tensors", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("args", ctypes.POINTER(ctypes.c_uint64)),
        ("tensor_ptrs", ctypes.POINTER(ctypes.c_void_p)),
        ("tensor_strides", ctypes.POINTER(ctypes.c_uint64)),
    ]


def _compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise KernelError("A kernel in C++ needs a compiler, and there is none. Install g++, or set CXX.")


def _compile(name: str, text: str) -> str:
    """A shared library; the same source is compiled once a process."""
    folder = _folder()
    key = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:16]
    library = os.path.join(folder, f"{name}-{key}.so")
    if not os.path.exists(library):
        source = os.path.join(folder, f"{name}-{key}.cpp")
        Path(source).write_text(text, encoding="utf-8")
        command = [_compiler(), "-std=c++17", "-O1", "-fPIC", "-shared", "-D__CPU_SIM", f"-I{INCLUDE}"]
        done = subprocess.run(command + [source, "-o", library], capture_output=True, text=True)
        if done.returncode != 0:
            raise KernelError(f"Kernel {name}: the C++ compiler refused its body.\n{done.stderr.strip()}")
    return library


_scratch: Optional[tempfile.TemporaryDirectory] = None


def _folder() -> str:
    global _scratch
    if _scratch is None:
        _scratch = tempfile.TemporaryDirectory(prefix="pto-wsp-")
    return _scratch.name


def _loaded(name: str, source: CppSource, more: str) -> tuple[Any, Any]:
    """The compiled body with its folder, and its function."""
    library = ctypes.CDLL(_compile(name, _BEFORE + source.unit(name) + _COUNTER + more))
    try:
        return library, getattr(library, source.function(name))
    except AttributeError:
        raise KernelError(f'Kernel {name}: the C++ source defines no function extern "C" {name}.') from None


def entry_of(name: str, source: CppSource, axes: int) -> int:
    """The address of what a core of the simulator calls with the words of a task, whose last scalars are its axes."""
    library, _ = _loaded(name, source, _ENTRY % {"function": source.function(name), "axes": axes})
    ctypes.c_void_p.in_dll(library, "pto_wsp_call").value = _native.foreign_call()
    _kept.append(library)
    address = ctypes.cast(library.pto_wsp_entry, ctypes.c_void_p).value
    assert address is not None
    return address


def body_of(name: str, source: CppSource) -> Callable[..., int]:
    """What a task of the kernel calls: its arguments and addresses, and gives its cycles."""
    library, function = _loaded(name, source, "")
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.POINTER(_Task), ctypes.c_void_p]
    counter = library.pto_wsp_take_cycles
    counter.restype = ctypes.c_uint64

    def call(arguments: Sequence[int], axis_arguments: int, addresses: Sequence[int], strides: Sequence[int]) -> int:
        args = (ctypes.c_uint64 * max(len(arguments), 1))(*[one & (2**64 - 1) for one in arguments])
        pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        steps = (ctypes.c_uint64 * max(len(strides), 1))(*[one & (2**64 - 1) for one in strides])
        task = _Task(0, 0, len(arguments), axis_arguments, len(addresses), 0, args, pointers, steps)
        counter()
        said = function(ctypes.byref(task), None)
        counted = counter()
        return said or counted

    return call


_BEFORE = '#include "pto/wsp/codegen/abi/ptoisa_bridge.hpp"\n'
_COUNTER = """
extern "C" uint64_t pto_wsp_take_cycles() { return pto::cpu_sim::take_cycles(); }
"""


_ENTRY = """
#include "pto/wsp/codegen/abi/kernel_abi.hpp"
extern "C" {
void (*pto_wsp_call)(const uint64_t*, uint64_t (*)(const KernelTaskDesc*, CSPTContext*), uint64_t (*)(), uint64_t) = nullptr;
uint64_t %(function)s(const KernelTaskDesc*, CSPTContext*);
void pto_wsp_entry(const uint64_t* words) { pto_wsp_call(words, &%(function)s, &pto_wsp_take_cycles, %(axes)d); }
}
"""
#: A core may call what is in these libraries as long as the process lives.
_kept: list[Any] = []


def axis_parameter(number: int) -> str:
    """The name of the parameter that is this axis of a task: a device gives a kernel parameters, and no axes."""
    return f"_axis_{number}"


def placeholder(name: str, params: Any, axes: int) -> str:
    """The textual form of a kernel whose body is elsewhere: its parameters, so many axes, and an instruction that does nothing."""
    declared = []
    for param in params:
        if param.tile is not None:
            tile = param.tile
            declared.append(f"{param.name}: {param.direction} {tile.dtype.value}[{tile.rows}, {tile.cols}]")
        elif param.scalar is not None:
            declared.append(f"{param.name}: {param.scalar.value}")
        else:
            raise KernelError(f"Kernel {name}, parameter {param.name}: {param.type!r} has no tile.")
    declared += [f"{axis_parameter(number)}: i64" for number in range(axes)]
    return f"kernel {name}({', '.join(declared)}) {{\n  %0 = constant 0 : u64\n  add_cycles %0\n}}\n"
