"""Folders for the files of diagnostics: `outputs/Class_case_TIME/` below the current folder, or below PTO_FIELD_OUTPUTS."""

import os
import re
import time
from pathlib import Path


def outputs_dir():
    """The folder of all of them."""
    return Path(os.environ.get("PTO_FIELD_OUTPUTS", "outputs"))


def sanitize_for_filename(text):
    """The text with characters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)


def new_folder(label):
    """A new folder for a run, made at once."""
    stamp = time.strftime("%Y%m%d_%H%M%S")
    for number in range(1000):
        suffix = f"_{number}" if number else ""
        folder = outputs_dir() / f"{sanitize_for_filename(label)}_{stamp}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"there are 1,000 folders like {folder}")
