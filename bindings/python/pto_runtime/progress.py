"""A progress bar for runs, in terminals and notebooks: `device.run(graph, progress=ProgressBar())`."""

import sys


def _in_notebook():
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


class ProgressBar:
    """Shows how many of the tasks that were added so far have completed. Silent without a terminal or a notebook."""

    width = 40

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.display = None
        if stream is None and _in_notebook():
            from IPython.display import HTML, display

            self.html = HTML
            self.display = display(HTML(""), display_id=True)

    def __call__(self, completed, added):
        if self.display is not None:
            bar = f'<progress value="{completed}" max="{max(added, 1)}"></progress>'
            self.display.update(self.html(f"{bar} {completed:,} of {added:,} tasks"))
        elif self.stream.isatty():
            filled = self.width * completed // max(added, 1)
            bar = "#" * filled + "." * (self.width - filled)
            self.stream.write(f"\r[{bar}] {completed:,} of {added:,} tasks")
            self.stream.flush()

    def close(self):
        """Removes the line from the terminal."""
        if self.display is None and self.stream.isatty():
            self.stream.write("\r\x1b[K")
            self.stream.flush()
