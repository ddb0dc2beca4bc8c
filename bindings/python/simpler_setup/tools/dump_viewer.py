"""Arguments of tasks that a run has kept: a list, or their elements as text.

python -m simpler_setup.tools.dump_viewer outputs/CASE/args_dump --task 0x0000000100000000 --export
"""

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy as np

_TYPES = {
    **{name: name for name in ("float32", "float16", "int32", "int16", "int8", "uint8", "int64", "uint64", "uint16", "uint32", "bool")},
    "bfloat16": "uint16",
}


def elements(folder, entry, manifest):
    """The elements of an entry; an empty array where its contents were not kept."""
    with (folder / manifest["bin_file"]).open("rb") as file:
        file.seek(entry["bin_offset"])
        contents = file.read(entry["bin_size"])
    if entry["dtype"] == "bfloat16":
        words = np.frombuffer(contents, np.uint16).astype(np.uint32) << 16
        return words.view(np.float32).reshape(entry["shape"] if contents else (0,))
    made = np.frombuffer(contents, _TYPES.get(entry["dtype"], "uint8"))
    return made.reshape(entry["shape"] if contents else (0,))


def _line(number, entry):
    what = f"{entry['dtype']}{entry['shape']}" if entry["kind"] == "tensor" else _scalar(entry["value"])
    return f"{number:>5}  {entry['task_id']}  arg {entry['arg_index']:>2}  {entry['role']:<6} {entry['stage']:<16} {what}"


def _scalar(word):
    (number,) = struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))
    return f"0x{word:x} (as float {number:g})"


def _chosen(manifest, values):
    for number, entry in enumerate(manifest["args"]):
        asked = (values.task, entry["task_id"]), (values.role, entry["role"])
        stage = values.stage is None or entry["stage"].startswith(values.stage)
        index = values.index is None or values.index == number
        if stage and index and all(wanted in (None, found) for wanted, found in asked):
            yield number, entry


def _newest():
    found = sorted(Path("outputs").glob("*/args_dump"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit("error: outputs/ has no args_dump folder: name one")
    return found[-1]


def main(given=None):
    """0: it is shown."""
    parser = argparse.ArgumentParser(
        description="Shows arguments that a run has kept.", epilog="example: python -m simpler_setup.tools.dump_viewer outputs/CASE/args_dump"
    )
    parser.add_argument("folder", nargs="?", help="an args_dump folder (default: the newest below outputs)")
    parser.add_argument("--task", help="only this task: 0x0000000100000000")
    parser.add_argument("--role", choices=("input", "output", "inout"))
    parser.add_argument("--stage", choices=("before", "after"))
    parser.add_argument("--index", type=int, help="only the entry of this number")
    parser.add_argument("--export", action="store_true", help="write the elements of each tensor to a text beside args.bin")
    values = parser.parse_args(given)
    folder = Path(values.folder) if values.folder else _newest()
    manifest = json.loads((folder / "args_dump.json").read_text())
    for number, entry in _chosen(manifest, values):
        print(_line(number, entry))
        if (values.export or values.index is not None) and entry["kind"] == "tensor" and entry["bin_size"]:
            target = folder / f"{number}_{entry['task_id']}_{entry['arg_index']}.txt"
            target.write_text(f"{_line(number, entry)}\n{np.array2string(elements(folder, entry, manifest), threshold=sys.maxsize)}\n")
            print(f"       {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
