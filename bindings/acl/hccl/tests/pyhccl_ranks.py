"""Makes every collective of the package pyhccl with 2, 4 and 8 ranks, in each way in which ranks find each other, and compares the bits with NumPy's.

    pto compat cann run --devices 8 -- python pyhccl_ranks.py [--ranks 2,4,8]

One process makes all communicators at once; or each rank is a process, with root information or with a rank table. Reductions are made in the order of the ranks
(HCCL_DETERMINISTIC), which is that of the reference; once more in any order, where all ways have to give the same bits."""

import argparse
import ctypes
import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from functools import reduce
from pathlib import Path

import numpy as np
import pyhccl

WAYS = ("all devices", "root information", "rank table")
COUNT = 1003
OPERATIONS = {
    "sum": (pyhccl.HCCL_REDUCE_SUM, np.add),
    "prod": (pyhccl.HCCL_REDUCE_PROD, np.multiply),
    "max": (pyhccl.HCCL_REDUCE_MAX, np.maximum),
    "min": (pyhccl.HCCL_REDUCE_MIN, np.minimum),
}
TYPES = {"float32": pyhccl.HCCL_DATA_TYPE_FP32, "int32": pyhccl.HCCL_DATA_TYPE_INT32}
ACL = ctypes.CDLL("libascendcl.so")
# The seconds that one way may take: a rank that waits for ever ends the run.
LIMIT = 120


def acl(name, *arguments):
    code = getattr(ACL, name)(*arguments)
    ACL.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert code == 0, f"{name}: {code}: {ACL.aclGetRecentErrMsg()}"


def good(code):
    ACL.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert code == 0, f"{pyhccl.get_error_string(code)}: {ACL.aclGetRecentErrMsg()}"


def values(rank, dtype, count):
    random = np.random.default_rng(rank)
    if dtype == "int32":
        return random.integers(-9, 9, count).astype(dtype)
    return random.standard_normal(count).astype(dtype)


class Rank:
    """A rank of this process: its device, a stream, and two arrays there."""

    def __init__(self, rank, size):
        self.rank, self.size, self.comm = rank, size, None
        acl("aclrtSetDevice", rank)
        stream = ctypes.c_void_p()
        acl("aclrtCreateStream", ctypes.byref(stream))
        self.stream = stream.value
        self.bytes = 8 * COUNT * size
        self.buffers = []
        for _ in range(2):
            pointer = ctypes.c_void_p()
            acl("aclrtMalloc", ctypes.byref(pointer), ctypes.c_size_t(self.bytes), 0)
            self.buffers.append(pointer.value)

    def set(self, array):
        """Puts an array into the first buffer, and fills the second one."""
        acl("aclrtSetDevice", self.rank)
        for buffer, data in zip(self.buffers, (array, np.full(self.bytes, 0x5A, np.uint8))):
            self.copy(buffer, data.ctypes.data, data.nbytes, 1)

    def get(self, which, dtype, count):
        acl("aclrtSetDevice", self.rank)
        acl("aclrtSynchronizeStream", ctypes.c_void_p(self.stream))
        array = np.empty(count, dtype)
        self.copy(array.ctypes.data, self.buffers[which], array.nbytes, 2)
        return array

    @staticmethod
    def copy(to, start, count, kind):
        size = ctypes.c_size_t(count)
        acl("aclrtMemcpy", ctypes.c_void_p(to), size, ctypes.c_void_p(start), size, kind)


def counts(size):
    """What each rank sends to each other one."""
    return [[(3 * one + 5 * other) % 7 * 20 for other in range(size)] for one in range(size)]


def cases(size):
    """Names, what a call is for a rank, elements that it gives, buffer and elements of the result (by rank), and NumPy's result (by rank)."""
    last = size - 1
    for dtype, kind in TYPES.items():
        parts = [values(rank, dtype, COUNT) for rank in range(size)]
        wholes = [values(rank, dtype, COUNT * size) for rank in range(size)]
        for name, (op, numpy) in OPERATIONS.items():
            total = reduce(numpy, parts)
            yield (f"all-reduce {name}", dtype, parts, 1, [total] * size,
                   lambda r, op=op, kind=kind: pyhccl.HcclAllReduce(*r.buffers, COUNT, kind, op, r.comm, r.stream))
        total = reduce(np.add, wholes)
        op = pyhccl.HCCL_REDUCE_SUM
        yield ("reduce", dtype, parts, 1, [None] * last + [reduce(np.add, parts)],
               lambda r, kind=kind: pyhccl.HcclReduce(*r.buffers, COUNT, kind, op, last, r.comm, r.stream))
        yield ("reduce-scatter", dtype, wholes, 1, [total[r * COUNT:][:COUNT] for r in range(size)],
               lambda r, kind=kind: pyhccl.HcclReduceScatter(*r.buffers, COUNT, kind, op, r.comm, r.stream))
        yield ("broadcast", dtype, parts, 0, [parts[last]] * size,
               lambda r, kind=kind: pyhccl.HcclBroadcast(r.buffers[0], COUNT, kind, last, r.comm, r.stream))
        yield ("all-gather", dtype, parts, 1, [np.concatenate(parts)] * size,
               lambda r, kind=kind: pyhccl.HcclAllGather(*r.buffers, COUNT, kind, r.comm, r.stream))
        yield ("scatter", dtype, wholes, 1, [wholes[last][r * COUNT:][:COUNT] for r in range(size)],
               lambda r, kind=kind: pyhccl.HcclScatter(*r.buffers, COUNT, kind, last, r.comm, r.stream))
        yield ("all-to-all", dtype, wholes, 1, [np.concatenate([w[r * COUNT:][:COUNT] for w in wholes]) for r in range(size)],
               lambda r, kind=kind: pyhccl.HcclAlltoAll(r.buffers[0], COUNT, kind, r.buffers[1], COUNT, kind, r.comm, r.stream))
        matrix = counts(size)
        starts = [np.concatenate([[0], np.cumsum(row)]) for row in matrix]
        sent = [np.concatenate([wholes[o][starts[o][r]:starts[o][r + 1]] for o in range(size)]) for r in range(size)]
        yield ("all-to-all-v", dtype, wholes, 1, sent, lambda r, kind=kind: with_counts(r, kind))
        flat = sum(matrix, [])
        yield ("all-to-all-vc", dtype, wholes, 1, sent,
               lambda r, kind=kind: pyhccl.HcclAlltoAllVC(r.buffers[0], flat, kind, r.buffers[1], kind, r.comm, r.stream))
        yield ("send, receive", dtype, parts, 1, [None, parts[0]] + [None] * (size - 2), lambda r, kind=kind: between_two(r, kind))
        yield ("batch", dtype, parts, 1, [parts[r - 1] for r in range(size)], lambda r, kind=kind: around(r, kind))
    yield ("barrier", "int32", [values(r, "int32", 1) for r in range(size)], 0, [None] * size, lambda r: pyhccl.HcclBarrier(r.comm, r.stream))


def with_counts(rank, kind):
    matrix = counts(rank.size)
    sends, receives = matrix[rank.rank], [row[rank.rank] for row in matrix]
    starts = [[0, *np.cumsum(row)[:-1].tolist()] for row in (sends, receives)]
    return pyhccl.HcclAlltoAllV(rank.buffers[0], sends, starts[0], kind, rank.buffers[1], receives, starts[1], kind, rank.comm, rank.stream)


def between_two(rank, kind):
    if rank.rank == 0:
        return pyhccl.HcclSend(rank.buffers[0], COUNT, kind, 1, rank.comm, rank.stream)
    return pyhccl.HcclRecv(rank.buffers[1], COUNT, kind, 0, rank.comm, rank.stream) if rank.rank == 1 else 0


def around(rank, kind):
    items = []
    for what, buffer, peer in (
        (pyhccl.HcclSendRecvType.HCCL_SEND, rank.buffers[0], rank.rank + 1),
        (pyhccl.HcclSendRecvType.HCCL_RECV, rank.buffers[1], rank.rank - 1),
    ):
        item = pyhccl.HcclSendRecvItem()
        item.sendRecvType, item.buf, item.count, item.dataType = what, buffer, COUNT, kind
        item.remoteRank = peer % rank.size
        items.append(item)
    return pyhccl.HcclBatchSendRecv(items, rank.comm, rank.stream)


def results(ranks):
    """What the ranks of this process get of each case: bytes, by the case and the rank."""
    found = {}
    for name, dtype, given, which, expected, call in cases(ranks[0].size):
        for rank in ranks:
            rank.set(given[rank.rank])
            good(call(rank))
        for rank in ranks:
            own = expected[rank.rank]
            length = 0 if own is None else len(own)
            found[name, dtype, rank.rank] = rank.get(which, dtype, length).tobytes()
    for rank in ranks:
        acl("aclrtSetDevice", rank.rank)
        good(pyhccl.HcclCommDestroy(rank.comm))
    return found


def child(way, rank, size, folder):
    """One rank as a process; root information and results go through files."""
    own, info = Rank(rank, size), folder / "info"
    if way == "rank table":
        code, own.comm = pyhccl.HcclCommInitClusterInfo(str(folder / "table.json"), rank)
    else:
        if rank == 0:
            code, root = pyhccl.HcclGetRootInfo()
            good(code)
            part = info.with_suffix(".part")
            part.write_bytes(root.internal)
            part.rename(info)
        while not info.exists():
            time.sleep(0.01)
        root = pyhccl.HcclRootInfo()
        root.internal = info.read_bytes()
        code, own.comm = pyhccl.HcclCommInitRootInfo(size, root, rank)
    good(code)
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(results([own])))


def made(way, size):
    """The results of one way, by the case and the rank."""
    if way == "all devices":
        ranks = [Rank(rank, size) for rank in range(size)]
        code, comms = pyhccl.HcclCommInitAll(list(range(size)))
        good(code)
        for rank, comm in zip(ranks, comms):
            rank.comm = comm
        return results(ranks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        devices = [{"device_id": str(rank), "rank_id": str(rank)} for rank in range(size)]
        table = {"version": "1.0", "status": "completed", "server_count": "1", "server_list": [{"server_id": "one", "device": devices}]}
        (folder / "table.json").write_text(json.dumps(table))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            environment = {**os.environ, "HCCL_IF_BASE_PORT": str(free.getsockname()[1])}
        command = [sys.executable, __file__, "--child", way]
        started = [subprocess.Popen([*command, str(rank), str(size), name], env=environment) for rank in range(size)]
        codes = [process.wait(LIMIT) for process in started]
        assert codes == [0] * size, f"{way}, {size} ranks: the processes end with {codes}"
        found = {}
        for rank in range(size):
            found.update(pickle.loads((folder / f"{rank}.pickle").read_bytes()))
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--child", nargs=4)
    arguments = parser.parse_args()
    if arguments.child:
        way, rank, size, folder = arguments.child
        return child(way, int(rank), int(size), Path(folder))
    sizes = [int(size) for size in arguments.ranks.split(",")]
    print(f"{'collective':20}" + "".join(f"{size:>3} ranks: {', '.join(WAYS)}   " for size in sizes))
    table, wrong = {}, 0
    for size in sizes:
        os.environ["HCCL_DETERMINISTIC"] = "true"
        fixed = [made(way, size) for way in WAYS]
        os.environ["HCCL_DETERMINISTIC"] = "false"
        free = [made(way, size) for way in WAYS]
        for name, dtype, _, _, expected, _ in cases(size):
            for rank, own in enumerate(expected):
                bits = b"" if own is None else own.tobytes()
                for at in range(len(WAYS)):
                    is_good = fixed[at][name, dtype, rank] == bits and free[at][name, dtype, rank] == free[0][name, dtype, rank]
                    cell = table.setdefault(name, {}).setdefault((size, at), [0, 0])
                    cell[not is_good] += 1
                    wrong += not is_good
    for name, cells in table.items():
        said = ["   ".join(f"{right} of {right + wrong}" for right, wrong in (cells[size, at] for at in range(len(WAYS)))) for size in sizes]
        print(f"{name:20}" + "   |   ".join(said))
    print(f"{sum(map(len, table.values()))} cells, {wrong} results with other bits")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
