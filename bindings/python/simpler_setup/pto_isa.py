"""Where the headers of PTO-ISA are. They are not ours, so the user names a folder with them."""

import os
from pathlib import Path

from pto_runtime.errors import ConfigError


def ensure_pto_isa_root(verbose=False, commit=None, **_clone):
    """The folder that PTO_ISA_ROOT names. Nothing is fetched: what programs until July 2026 say of commits and clones has no effect."""
    root = os.environ.get("PTO_ISA_ROOT")
    if not root:
        raise ConfigError(
            "the kernels need the headers of PTO-ISA, and PTO_ISA_ROOT is not set. "
            "Set PTO_ISA_ROOT to the folder of a checkout of PTO-ISA, the one that has `include/pto`."
        )
    if not (Path(root) / "include" / "pto").is_dir():
        raise ConfigError(f"PTO_ISA_ROOT is {root!r}, and there is no folder {root}/include/pto")
    if verbose:
        print(f"PTO-ISA: {root}")
    return root
