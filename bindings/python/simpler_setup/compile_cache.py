"""Compiled objects, kept by content: of the source, of every header that the compiler read, of the command and of the compiler.

A manifest next to each object lists the headers with their hashes. An object is used again while all of them are as they were.
"""

import functools
import hashlib
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from pto_runtime.errors import CompileError
from pto_runtime.headers import cache_dir, write_whole


def _digest(parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


@functools.lru_cache(maxsize=65536)
def _content(path, _stamp, _size):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _hash_of(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _content(str(path), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _version(program):
    return subprocess.run([program, "--version"], capture_output=True, check=True).stdout


def _listed(rule):
    """The files that a rule of make names."""
    words = rule.replace("\\\n", " ").replace("\\ ", "\0").split()
    return sorted({word.replace("\0", " ") for word in words[1:]})


class CompileCache:
    """Compiles what is not kept. `hits` and `misses` count both."""

    def __init__(self):
        self.hits = self.misses = 0
        self._one_header = threading.Lock()

    def compiled(self, program, flags, source):
        """The bytes of the object that this command makes of a source."""
        source = Path(source).resolve()
        if not source.is_file():
            raise CompileError(f"there is no source {source}")
        return self._kept([program, *map(str, flags), str(source)], source, ".so").read_bytes()

    def precompiled(self, program, flags, lines):
        """A header of these lines, precompiled by clang for these flags: its file."""
        text = "".join(f"#include {line}\n" for line in lines)
        source = cache_dir() / "field" / f"header-{_digest([text.encode()])[:16]}.hpp"
        with self._one_header:
            if not source.is_file():
                write_whole(source, text.encode())
            command = [program, *map(str, flags), "-x", "c++-header", "-fpch-instantiate-templates", str(source)]
            made = self._kept(command, source, ".pch")
            # Under a name by its content: what is compiled with it is kept by its command, which has the name.
            named = made.with_name(f"header-{hashlib.sha256(made.read_bytes()).hexdigest()[:32]}.pch")
            if not named.is_file():
                write_whole(named, made.read_bytes())
        return named

    def _kept(self, command, source, suffix):
        parts = [" ".join(command).encode(), _version(command[0]), source.read_bytes()]
        kept = cache_dir() / "field" / f"{source.stem}-{_digest(parts)[:32]}"
        made, manifest = kept.with_suffix(suffix), kept.with_suffix(".json")
        if made.is_file() and _is_current(manifest):
            self.hits += 1
            return made
        self.misses += 1
        self._compile(command, source, made, manifest)
        return made

    def _compile(self, command, source, made, manifest):
        with tempfile.TemporaryDirectory() as folder:
            target, rule = Path(folder) / "made", Path(folder) / "made.d"
            line = [*command, "-MMD", "-MF", str(rule), "-o", str(target)]
            done = subprocess.run(line, capture_output=True, check=False)
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").rstrip()
                raise CompileError(f"{source} does not compile:\n{said}\nThe command was: {' '.join(line)}")
            headers = {path: _hash_of(path) for path in _listed(rule.read_text())}
            write_whole(made, target.read_bytes())
        write_whole(manifest, json.dumps(headers).encode())


def _is_current(manifest):
    try:
        headers = json.loads(manifest.read_text())
    except (OSError, ValueError):
        return False
    return all(_hash_of(path) == known for path, known in headers.items())
