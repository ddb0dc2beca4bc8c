"""Where in the user's source something was written."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Optional

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_line() -> Optional[str]:
    """`file:line` of the innermost frame that is not of this package; None if there is none."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
