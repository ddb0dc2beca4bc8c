#!/bin/sh
# use_wheel.sh WHEELS: installs the package from the folder WHEELS into a fresh environment, and uses it and the command in it.
set -eu
wheels=$1

python3 -m venv environment
environment/bin/python -m pip install --quiet --no-index --find-links "$wheels" pto_runtime
PATH=$PWD/environment/bin:$PATH

pto --version
pto run paged_attention
pto run vector_example --hosting virtual --trace trace.json
pto view trace.json -o page.html
test -s page.html
cat > sum.py <<'PROGRAM'
import numpy as np
from pto_runtime import Device, Graph, download, upload

with Device() as device:
    device.register_library()
    add = next(func_id for func_id, name, _ in device.kernels if name == "add")
    a, b = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    x, y, total = upload(device, a), upload(device, b), device.malloc(a.nbytes)
    graph = Graph()
    graph.add_task(add, "aiv", [x, y, total, a.size])
    device.run(graph)
    assert (download(device, total, a.shape, a.dtype) == a + b).all()
print("64 sums are right")
PROGRAM
python sum.py
cat > count.py <<'PROGRAM'
import ctypes
acl = ctypes.CDLL("libascendcl.so")
count = ctypes.c_uint32()
assert acl.aclInit(None) == 0 and acl.aclrtGetDeviceCount(ctypes.byref(count)) == 0 and acl.aclFinalize() == 0
print(count.value, "devices of CANN")
PROGRAM
pto compat cann run -- python count.py
