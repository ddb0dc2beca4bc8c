"""The indices of the 8 largest of 32 scores, with a cost that depends on a length in a tensor: the run reads the length into a
slot when it gets there, and takes the branch of its tier. The kernel is written in three ways."""

import shutil
import sys

import numpy as np
from outcome import Outcome, finished

from pto_wsp import (
    DispatchPolicy, DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, ptoisa, ptoisa_kernel, slot_load_u64, workload,
)  # fmt: skip
from pto_wsp.scalar_expr import slot_u64

SCORES, INDICES = Tile[1, 32, DType.F32], Tile[1, 8, DType.I32]
TIERS = (2048, 8192, 65536, 131072)

CPP = """
  using Row = pto::Shape<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
  using Step = pto::Stride<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
  const auto* steps = task->tensor_strides;
  pto::GlobalTensor<float, Row, Step> global(
      static_cast<float*>(task->tensor_ptrs[0]), Row(1, 32), Step(int64_t(steps[0]), int64_t(steps[1])));
  pto::Tile<pto::TileType::Vec, float, 1, 32> scores;
  pto::Tile<pto::TileType::Vec, uint32_t, 1, 32> places;
  pto::Tile<pto::TileType::Vec, float, 1, 64> pairs;
  pto_wsp::ptoisa::TLOAD(scores, global);
  for (uint32_t i = 0; i < 32; ++i) places.data()[i] = i;
  pto_wsp::ptoisa::TSORT32(pairs, scores, places);
  auto* out = static_cast<int32_t*>(task->tensor_ptrs[1]);
  for (int i = 0; i < 8; ++i) out[i * int64_t(steps[3])] = int32_t(pairs.data()[2 * i + 1]);
  const int64_t length = int64_t(task->args[task->num_axis_args]);
  if (length > 32) pto::cpu_sim::add_cycles(uint64_t(length / 32) * 128);
"""


@kernel
def with_pto(scores: In[SCORES], out: Out[INDICES], length: Scalar[DType.I32]):
    pairs = pto.tsort32(scores, pto.iota_u32(32))
    pto.store(out, pto.extract_topk_indices(pairs, 8))


@ptoisa_kernel
def with_ptoisa(scores: In[SCORES], out: Out[INDICES], length: Scalar[DType.I32]):
    pairs = ptoisa.TSORT32(ptoisa.tload(scores), ptoisa.iota_u32(32))
    ptoisa.store_topk_indices_i32(out, pairs, 8)
    ptoisa.cpu_sim_add_cycles(f"{length.name} > 32 ? (uint64_t)({length.name} / 32) * 128ull : 0")


@kernel(cpp_src=CPP)
def with_cpp(scores: In[SCORES], out: Out[INDICES], length: Scalar[DType.I32]):
    pass


KERNELS = {"pto": with_pto, "ptoisa": with_ptoisa, "cpp": with_cpp}


def run(style="ptoisa", seed=0, batch=2, tiles=4):
    top = KERNELS[style]
    random = np.random.default_rng(seed)
    scores = random.standard_normal((batch, tiles, 1, 32), dtype=np.float32)
    choices = np.array([512, 4096, 16384, 131072], np.uint64)
    lengths = random.choice(choices, size=(batch, tiles, 1, 1), replace=True)
    result = np.zeros((batch, tiles, 1, 8), np.int32)
    x, y = Tensor(scores, scores.shape, DType.F32), Tensor(result, result.shape, DType.I32)
    n = Tensor(lengths, lengths.shape, DType.U64)

    def tier(b, t, tiers):
        if len(tiers) == 1:
            top[b, t](x[b][t], y[b][t], tiers[0])
            return
        with P.when(slot_u64(0) <= tiers[0]):
            top[b, t](x[b][t], y[b][t], tiers[0])
        with P.otherwise():
            tier(b, t, tiers[1:])

    @workload
    def indexer():
        for b, t in P(batch, tiles):
            slot_load_u64(0, n[b][t])
            tier(b, t, TIERS)

    cycles = finished(indexer().dispatch(DispatchPolicy.affinity(lambda t: t.get("b"), 4)).compile())
    expected = np.argsort(-scores, axis=-1, kind="stable")[..., :8]
    return Outcome(result, expected, cycles, 0, 0)


if __name__ == "__main__":
    assert run("pto").is_right()
    if shutil.which("c++") or shutil.which("g++"):
        assert run("cpp").is_right()
    else:
        print("no C++ compiler: the third way is left out", file=sys.stderr)
    run("ptoisa").report()
