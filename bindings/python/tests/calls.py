"""Calls of the package by seeds: objects that are open, closed, or of another session, exceptions in functions that are called back, threads that end, cycles.

    python bindings/python/tests/calls.py SEED CALLS [list]

Each call either does what it says or raises an exception of the package. Everything else (a crash, a hang, another exception) is a defect; the last line of the
list is the call that was made. `test_calls.py` runs this program with fixed seeds.
"""

import faulthandler
import gc
import inspect
import random
import sys
import threading

import numpy as np

import pto_runtime as pto
from pto_runtime import ops

CALLS_OF_A_SEED = 120
REFUSALS = (pto.PtoError, ValueError, TypeError, OverflowError, MemoryError, BufferError, IndexError)
NOTHING = 12  # a library kernel without arguments


class Deliberate(Exception):
    """What functions raise that are called back."""


def fail():
    raise Deliberate()


class Script:
    """Objects of one script, and the calls on them."""

    def __init__(self, seed, lists):
        self.random = random.Random(seed)
        self.lists = lists
        self.pools = {name: [] for name in ("device", "session", "stream", "program", "event", "flag", "buffer", "tensor", "recording", "array")}
        self.kept = threading.local()
        self.empty = None

    def any(self, name):
        if self.random.random() < 0.03:
            return self.random.choice([None, 0, "", b"", object()])
        pool = self.pools[name]
        return self.random.choice(pool) if pool else None

    def put(self, name, made):
        pool = self.pools[name]
        if len(pool) > 6:
            pool.pop(self.random.randrange(len(pool)))
        pool.append(made)

    def number(self):
        return self.random.choice([0, 0, 1, 7, 8, 64, 64, 4096, -1, 2**31, 2**32, 2**40, 2**63 - 1, 2**63, 2**64, 1.5, None, "x"])

    def open(self):
        hosting = self.random.choice(["pool", "pool", "pool", "virtual", "nowhere"])
        threads = self.random.choice([1, 1, 2]) if hosting == "pool" else None
        device = pto.Device(aic=4, aiv=8, gm_bytes=64 << 20, hosting=hosting, os_threads=threads)
        device.register_library()
        if self.empty is None:
            self.empty = next(number for number, name, _ in device.kernels if name == "empty_aiv")
        self.put("device", device)

    def on_device(self):
        device = self.any("device")
        what = self.random.randrange(6)
        if what == 0 and self.random.random() < 0.2:
            device.close()
        elif what == 1:
            self.put("session", device.session(on_chip_bytes=self.random.choice([0, 0, 4096, -1])))
        elif what == 2:
            device.free(device.malloc(self.number()))
        elif what == 3:
            device.copy_to_device(self.number(), self.number())
        elif what == 4:
            graph = pto.Graph()
            for _ in range(self.random.randrange(5)):
                graph.add_task(self.empty, "aiv", [])
            if self.random.random() < 0.5:
                graph.add_edge(self.number(), self.number())
            device.run(graph, progress=self.random.choice([None, lambda *_: fail(), lambda *_: None]))
        else:
            device.unregister_kernel(self.number())

    def on_session(self):
        session = self.any("session")
        what = self.random.randrange(9)
        if what == 0 and self.random.random() < 0.2:
            session.close()
        elif what == 1:
            session.reset()
        elif what == 2:
            self.put("event", session.event())
        elif what == 3:
            self.put("flag", session.notify())
        elif what in (4, 5):
            self.put("program", session.stream(overlap=self.random.choice([0, 1, 2, -1, 2**40])))
        elif what == 6 and self.random.random() < 0.3:
            self.pools["session"].clear()
        else:
            self.put("stream", session.kernel_stream())

    def address_or_tensor(self):
        tensor = self.any("tensor")
        return tensor if self.random.random() < 0.9 else self.number()

    def on_stream(self):
        stream = self.any("stream")
        what = self.random.randrange(20)
        if what < 3:
            stream.launch(self.empty, [], blocks=self.random.choice([1, 1, 3, 0, -1, 2**16, 2**40]))
        elif what == 3:
            stream.launch(self.random.choice([-1, 1023, 2**16, 2**40]), [])
        elif what == 4:
            stream.fill(self.address_or_tensor(), self.random.choice([0, 255, 256, -1]), self.number())
        elif what == 5:
            stream.copy(self.address_or_tensor(), self.address_or_tensor(), self.number())
        elif what == 6:
            stream.copy_to_device(self.address_or_tensor(), self.any("buffer"))
        elif what == 7:
            stream.copy_from_device(self.address_or_tensor(), self.any("buffer"))
        elif what == 8:
            stream.reduce(self.random.choice(["sum", "max", "?"]), self.random.choice(["f32", "f16", "?"]), self.address_or_tensor(), self.address_or_tensor(), self.number())
        elif what == 9:
            stream.call(self.random.choice([lambda: None, fail, lambda: stream.query(), lambda: sys.exit(3), None, gc.collect]))
        elif what == 10:
            # The function holds what holds it.
            held = [stream, self.any("session")]
            held.append(held)
            stream.call(lambda: held.clear())
        elif what == 11:
            stream.record(self.any("event"))
        elif what == 12:
            stream.wait(self.any("event"))
        elif what == 13:
            stream.notify(self.any("flag"))
        elif what == 14:
            stream.query()
        elif what == 15:
            stream.abort()
        elif what == 16:
            stream.begin_capture()
        elif what == 17:
            self.put("recording", stream.end_capture())
        elif what == 18:
            stream.launch_recording(self.any("recording"), self.random.choice([(), [(self.address_or_tensor(), self.address_or_tensor())], [(1,)], None]))
        else:
            stream.synchronize(self.random.choice([0.0, 0.001, 0.001, -1.0, float("nan"), "x"]))

    def on_program(self):
        stream = self.any("program")
        what = self.random.randrange(8)
        if what < 3:
            self.put("tensor", stream.zeros(self.random.choice(["f32", "f32", "f16", "?"]), self.random.choice([[64], [8, 8], [], [0], [-1], [2**40, 2**40]])))
        elif what == 3:
            self.put("tensor", stream.to_dtype(self.any("tensor"), self.random.choice(["f16", "f32", "?"])))
        elif what == 4:
            stream.to_host(self.any("tensor"))
        elif what == 5:
            self.put("tensor", stream.take_over(self.any("tensor"), self.any("program")))
        elif what == 6:
            self.random.choice([stream.flush, stream.abort])()
        else:
            stream.synchronize(0.001)

    def attribute(self):
        some = self.random.choice
        value = some([self.number(), some([0, 1, -1, 2]), some(["f32", "bool", "i64", "relu", "max", "same_upper", "?"]), 0.5, True, None])
        shape = some([[], value, [value], [value, 2], [1, 1, 1, 1], {"max": {}}, {"scales": [1, 2]}, {"?": value}])
        return some([value, shape])

    def on_array(self):
        operators = ops.operators()
        what, stream = self.random.randrange(12), self.any("program")
        if what < 2:
            shape = self.random.choice([(), (4,), (2, 3), (1, 2, 4, 4), (0, 3)])
            values = np.arange(np.prod(shape), dtype=self.random.choice(["f4", "f4", "f2", "f8", "i8", "u1", "?"])).reshape(shape)
            self.put("array", ops.array(values, stream, dtype=self.random.choice([None, None, "bf16", "?"])))
        elif what < 8:
            name = self.random.choice(list(operators))
            names = list(inspect.signature(operators[name]).parameters)
            inputs = [self.random.choice([self.any("array"), self.any("array"), self.any("array"), self.number(), None]) for _ in operators[name].inputs]
            attributes = {one: self.attribute() for one in names[len(inputs) :] if self.random.random() < 0.5}
            made = operators[name](*inputs, **attributes)
            self.put("array", made[0] if isinstance(made, tuple) else made)
        elif what == 8:
            self.put("array", self.any("array")[self.random.choice([0, -1, slice(1), slice(None, None, -1), None, (0, 0), self.number()])])
        elif what == 9:
            self.put("tensor", self.any("array").tensor)
        elif what == 10:
            self.put("array", ops.from_tensor(self.any("tensor"), stream, self.random.choice([None, "bool", "f32"])))
        else:
            array = self.any("array")
            self.random.choice([array.numpy, array.synchronize, lambda: self.put("array", ops.from_dlpack(array, stream))])()

    def on_others(self):
        what = self.random.randrange(6)
        if what == 0:
            self.put("buffer", pto.HostBuffer(self.random.choice([0, 64, 64, 256, -1, 2**63, 2**64, "x"])))
        elif what == 1:
            self.any("buffer").write(self.random.choice([b"x", b"", None, 3]))
        elif what == 2:
            event = self.any("event")
            event.is_complete(), event.time()
        elif what == 3:
            self.kept.held = [self.any(self.random.choice(list(self.pools))) for _ in range(3)]
        elif what == 4:
            gc.collect()
        else:
            pool = self.pools[self.random.choice(list(self.pools))]
            if pool:
                pool.pop()

    def play(self, calls):
        makers = [self.on_device] + [self.on_session] * 3 + [self.on_stream] * 8 + [self.on_program] * 3 + [self.on_array] * 6 + [self.on_others] * 2
        for _ in range(calls):
            maker = self.random.choice(makers) if self.pools["device"] or self.pools["session"] else self.open
            state = self.random.getstate()
            if self.lists:
                print(threading.get_ident(), maker.__name__, hash(state), flush=True)
            try:
                maker()
            except REFUSALS:
                pass
            except (AttributeError, Deliberate):
                pass  # None or another type instead of an object, or a function of the caller's raised


def main():
    faulthandler.enable()
    faulthandler.dump_traceback_later(90, exit=True)
    seed, calls, lists = int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
    # What functions raise that are called back is not the test's output.
    sys.unraisablehook = lambda *_: None
    while calls > 0:
        print("seed", seed, flush=True)
        faulthandler.dump_traceback_later(90, exit=True)
        script = Script(seed, lists)
        count = min(calls, CALLS_OF_A_SEED)
        threads = [threading.Thread(target=script.play, args=(count // 2,)) for _ in range(seed % 3)]
        for thread in threads:
            thread.start()
        script.play(count)
        for thread in threads:
            thread.join()
        # What is left of the last script ends with the interpreter.
        seed, calls = seed + 1, calls - count - len(threads) * (count // 2)
    print("done", flush=True)


if __name__ == "__main__":
    main()
