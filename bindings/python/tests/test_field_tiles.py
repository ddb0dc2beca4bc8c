"""The header in front of PTO-ISA's: kernels report their tile instructions, and barriers act. A folder with a few lines replaces PTO-ISA."""

import ctypes

import pytest
from simpler.diagnostics import Diagnostics
from simpler_setup import KernelCompiler
from simpler_setup.scene_command import _Values
from simpler.task_interface import CallConfig

# What the header needs of the next one.
TRACE = """
#pragma once
#include <cstddef>
#include <string_view>
namespace pto {
enum class TileType { Vec, Mat, Left, Right, Acc, Bias };
enum class SyncCoreType { AIVOnly, AICOnly, Mix };
struct Tile {
    static constexpr TileType Loc = TileType::Vec;
    using DType = float;
    int rows, columns;
    int GetValidRow() { return rows; }
    int GetValidCol() { return columns; }
};
template <typename T> constexpr bool is_tile_data_v = std::is_same_v<T, Tile>;
template <typename T> constexpr bool is_conv_tile_v = false;
template <typename T> constexpr bool is_global_data_v = false;
namespace cpu_sim {
struct PtoInstrTraceScope {
    template <typename... Args> PtoInstrTraceScope(std::string_view, size_t, Args &...) {}
};
}
}
"""
INSTRUCTIONS = """
#pragma once
#include <pto/cpu/trace.hpp>
namespace pto {
template <SyncCoreType Type = SyncCoreType::AIVOnly> inline void SYNCALL_IMPL() {}
inline void SYNCALL_SOFT_AIC_IMPL(int *, int) {}
}
#define PTO_INSTR_HPP
#include <pto/cpu/trace.hpp>
namespace pto {
template <SyncCoreType Type = SyncCoreType::AIVOnly> inline void SYNCALL() { SYNCALL_IMPL<Type>(); }
inline void TADD(Tile &to, Tile &a, Tile &b) {
    cpu_sim::PtoInstrTraceScope whole("TADD", 1, to, a, b);
    cpu_sim::PtoInstrTraceScope part("TMOV", 1, to, a);
}
}
"""
KERNEL = """
#include <pto/pto-inst.hpp>
extern "C" void kernel_entry(int64_t *) {
    pto::Tile a{2, 8}, b{2, 8}, sum{2, 8};
    pto::TADD(sum, a, b);
    pto::SYNCALL();
    pto::SYNCALL<pto::SyncCoreType::Mix>();
}
"""


class Operand(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_uint32), ("element_bytes", ctypes.c_uint32), ("rows", ctypes.c_uint64), ("columns", ctypes.c_uint64)]


class Instruction(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("length", ctypes.c_uint64), ("operands", ctypes.POINTER(Operand)), ("count", ctypes.c_uint64)]


COUNT = ctypes.CFUNCTYPE(None, ctypes.POINTER(Instruction))
RAISE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
WAIT = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


class Table(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint64), ("rest", ctypes.c_void_p * 3), ("count", COUNT), ("raised", RAISE), ("wait", WAIT)]


def reported(tmp_path, monkeypatch, version):
    """What the kernel reports to a table of this version."""
    monkeypatch.setenv("PTO_FIELD_KERNEL_CXX", "g++")
    monkeypatch.setenv("PTO_CACHE", str(tmp_path / "cache"))
    for name, text in [("pto/cpu/trace.hpp", TRACE), ("pto/pto-inst.hpp", INSTRUCTIONS)]:
        path = tmp_path / "tiles/include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    source = tmp_path / "kernel.cpp"
    source.write_text(KERNEL)
    made = tmp_path / f"kernel{version}.so"
    made.write_bytes(KernelCompiler("a2a3sim").compile_incore(source, "aiv", tmp_path / "tiles"))
    found = []

    def count(instruction):
        one = instruction.contents
        operands = [(one.operands[at].memory, one.operands[at].element_bytes, one.operands[at].rows, one.operands[at].columns) for at in range(one.count)]
        found.append((one.name[: one.length].decode(), operands))

    table = Table(version, (ctypes.c_void_p * 3)(), COUNT(count), RAISE(lambda *raised: found.append(("raise", raised))), WAIT(lambda flag: found.append(("wait", flag))))
    loaded = ctypes.CDLL(str(made))
    ctypes.c_void_p.in_dll(loaded, "pto_field_sim_table").value = ctypes.addressof(table)
    loaded.kernel_entry(None)
    return found


def test_kernels_tell_their_outermost_instructions_and_barriers_act(tmp_path, monkeypatch):
    add = ("TADD", [(1, 4, 2, 8)] * 3)
    meetings = [("raise", (0, 16)), ("wait", 16), ("raise", (2, 18)), ("wait", 19)]
    assert reported(tmp_path, monkeypatch, 2) == [add, *meetings]


def test_a_runtime_that_knows_nothing_of_it_is_told_nothing(tmp_path, monkeypatch):
    assert reported(tmp_path, monkeypatch, 1) == []


def test_counters_that_nothing_counts_are_refused(monkeypatch, tmp_path):
    config = CallConfig()
    config.enable_pmu, config.output_prefix = 4, str(tmp_path)
    with pytest.raises(ValueError, match="asks for the group 'memory'.*use --enable-pmu 2"):
        Diagnostics(config)
    config.enable_pmu = 2
    Diagnostics(config)
    monkeypatch.setenv("SIMPLER_PMU_EVENT_TYPE", "8")
    with pytest.raises(ValueError, match="L2 cache"):
        Diagnostics(config)


def test_options_of_a_command_are_asked_for_as_those_of_pytest():
    values = _Values(enable_pmu=2)
    assert (values.getoption("--enable-pmu"), values.getoption("--no-such", default=7)) == (2, 7)
