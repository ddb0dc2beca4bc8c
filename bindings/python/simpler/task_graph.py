"""Tasks of a level-3 run: each waits for those before it whose tensors overlap its own, then runs on its devices.

An edge arises where the earlier or the later of two tasks writes what both use. A group begins on all of its devices together:
the devices get groups in one order, so that two groups never wait for one another.
"""

import threading


class Task:
    """Work for one or several lanes, and the tasks it waits for."""

    def __init__(self, parts, accesses):
        # Pairs of a lane and what the lane calls.
        self.parts = parts
        self.accesses = accesses
        self.waits_for = 0
        self.followers = []
        self.parts_left = len(parts)
        self.is_over = False


class TaskGraph:
    """The tasks of one run. `add` may be called while earlier tasks run; `drain` waits for all and raises the first error."""

    def __init__(self):
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._live = []
        self._error = None

    def add(self, parts, accesses):
        """Adds a task that uses (tensor, is_read, is_written) of each access."""
        task = Task(parts, accesses)
        with self._lock:
            for before in self._live:
                if _conflict(before, task):
                    before.followers.append(task)
                    task.waits_for += 1
            self._live.append(task)
            if task.waits_for == 0:
                self._start(task)
        return task

    def _start(self, task):
        # Under the lock: every lane sees the groups in the same order.
        for lane, call in task.parts:
            done = lane.submit(self._guarded, call)
            done.add_done_callback(lambda future, task=task: self._ended(task, future))

    def _guarded(self, call):
        with self._lock:
            is_lost = self._error is not None
        if not is_lost:
            call()

    def _ended(self, task, future):
        error = future.exception()
        with self._lock:
            if error is not None and self._error is None:
                self._error = error
            task.parts_left -= 1
            if task.parts_left == 0:
                self._complete(task)

    def _complete(self, task):
        task.is_over = True
        self._live.remove(task)
        for follower in task.followers:
            follower.waits_for -= 1
            if follower.waits_for == 0:
                self._start(follower)
        self._changed.notify_all()

    def wait_for(self, task):
        """Waits for one task."""
        with self._lock:
            self._changed.wait_for(lambda: task.is_over)

    def drain(self):
        """Waits for all tasks; raises the error of the first that failed."""
        with self._lock:
            self._changed.wait_for(lambda: not self._live)
            if self._error is not None:
                raise self._error


def _conflict(before, after):
    for tensor, _, was_written in before.accesses:
        for other, _, is_written in after.accesses:
            if (was_written or is_written) and tensor.overlaps(other):
                return True
    return False


def accesses_of(args):
    """What a task with these arguments reads and writes; tensors without dependencies are left out."""
    return [(tensor, tag.is_read, tag.is_written) for tensor, tag in args.tensors if tag.is_read or tag.is_written]
