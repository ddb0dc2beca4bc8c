"""Files that a run writes when its configuration asks for them."""

from pathlib import Path


class Diagnostics:
    """What a run is asked to keep, and the files made of it."""

    def __init__(self, config):
        self._config = config
        self._folder = Path(config.output_prefix) if config.output_prefix else None
        if config.has_diagnostics and self._folder is None:
            raise ValueError("the configuration asks for diagnostics and has no output_prefix, the folder for their files")

    def options(self):
        """What the run must keep for the files."""
        return {"trace": bool(self._config.has_diagnostics)}

    def write(self, outcome, chip, args):
        """Writes the files."""
        if not self._config.has_diagnostics:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
