"""A run that goes on: whether it is done, and its end."""

import concurrent.futures


class RunHandle:
    """What `Worker.submit` gives. `wait` raises what the run raised."""

    def __init__(self, future):
        self._future = future

    @property
    def done(self):
        """Whether the run has ended, well or not."""
        return self._future.done()

    def wait(self, timeout=None):
        """Waits for the end, at most so many seconds; raises TimeoutError, or the run's error."""
        try:
            return self._future.result(timeout)
        except concurrent.futures.TimeoutError as error:
            if self._future.done():
                raise
            raise TimeoutError(f"the run has not ended within {timeout} s") from error

    def result(self, timeout=None):
        """The same as `wait`."""
        return self.wait(timeout)
