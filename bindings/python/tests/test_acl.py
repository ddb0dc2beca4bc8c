"""Programs for the CANN interface from Python: `pto_runtime.acl`."""

import pathlib
import subprocess
import sys

import pytest

from pto_runtime import ConfigError, acl

LOADS = """
import ctypes
library = ctypes.CDLL("libascendcl.so")
assert library.aclInit(None) == 0
ctypes.CDLL("libacl_op_compiler.so"), ctypes.CDLL("libfmk_onnx_parser.so")
count = ctypes.c_uint32()
assert library.aclrtGetDeviceCount(ctypes.byref(count)) == 0
print("devices:", count.value)
"""


def test_a_program_finds_every_library():
    folder = pathlib.Path(acl.command()).parent
    missing = [name for name in ("libascendcl.so", "libpto_acl.so", "libacl_op_compiler.so") if not (folder / name).is_file()]
    if missing:
        pytest.skip(f"{', '.join(missing)} not next to {acl.command()}: build them (cargo build -p pto-acl -p pto-acl-entry -p pto-acl-graph)")
    done = acl.run([sys.executable, "-c", LOADS], devices=3, virtual=True, seed=5, check=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "devices: 3\n"), done.stderr


def test_the_end_is_that_of_the_program(tmp_path, monkeypatch):
    command = tmp_path / "pto"
    command.write_text("#!/bin/sh\necho $@\nexit 7\n")
    command.chmod(0o755)
    monkeypatch.setenv("PTO_COMMAND", str(command))
    done = acl.run(["a", "b"], device="qemu", trace=tmp_path / "t.json", stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (7, f"compat cann run --device qemu --trace {tmp_path}/t.json -- a b\n")
    monkeypatch.setenv("PTO_COMMAND", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="set PTO_COMMAND"):
        acl.run(["a"])
