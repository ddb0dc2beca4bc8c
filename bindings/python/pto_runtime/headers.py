"""The headers that sources in C and C++ include."""

import hashlib
import os
import tempfile
from pathlib import Path

from . import _native


def cache_dir():
    """Where compiled objects and headers are kept: $PTO_CACHE, else $XDG_CACHE_HOME/pto, else ~/.cache/pto."""
    own = os.environ.get("PTO_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pto"


def write_whole(path, content):
    """Writes a file so that other processes see it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def include_dir():
    """A folder with runtime.h (class Runtime), pto_stream.hpp, pto_table.hpp, pto_runtime.h and what they include, for `-I`."""
    return _written(_native.headers(), "include")


def _written(texts, kind):
    """The folder that holds these texts, under a name by their content."""
    digest = hashlib.sha256("".join(name + text for name, text in texts).encode()).hexdigest()[:16]
    folder = cache_dir() / kind / digest
    for name, text in texts:
        path = folder / name
        if not path.is_file():
            write_whole(path, text.encode())
    return folder


def field_include_dir():
    """A folder with the headers of the field's programs (`pto_orchestration_api.h`, `tensor.h`, ...), for `-I`."""
    return _written(_native.field_headers(), "field-include")
