"""Scene tests under pytest: `python -m pytest -p simpler_setup.pytest_plugin --platform a2a3sim tests/`.

Fixtures: st_platform, st_device_ids, st_worker, device_pool. Markers: platforms, device_count, manual, runtime, sdma,
requires_hardware.
"""

import sys
import time

import pytest

from . import scene_report, scene_worker
from .log_config import DEFAULT_LOG_LEVEL, configure_logging
from .old_torch import complete
from .scene_case import Selection, is_manual, matches_manual, platforms_of

_MARKERS = {
    "platforms": "the platforms that a test runs on",
    "device_count": "how many devices a test needs",
    "manual": "run only when asked for: on all platforms, or on those listed",
    "runtime": "the runtime that a test needs",
    "sdma": "needs the copy engine of a device",
    "requires_hardware": "needs a device: on all platforms, or on those listed",
    "timeout": "how long a test may take",
}



def pytest_addoption(parser):
    group = parser.getgroup("scene tests")
    group.addoption("--platform", help="a2a3sim or a5sim, the simulators")
    group.addoption("--device", default="0", help="a device, a range 0-3, or a list 0,2 (default 0)")
    for names, options in scene_report.OPTIONS:
        group.addoption(*names, **options)
    _keep(parser, {"--platform", "--device", *(name for names, _ in scene_report.OPTIONS for name in names)})


def _keep(parser, ours):
    """A conftest of a program may define options of these names as well: then ours, which came first, count."""

    def guarded(add):
        def addoption(*names, **attributes):
            if not ours.intersection(names):
                add(*names, **attributes)

        return addoption

    find = parser.getgroup

    def getgroup(*names, **attributes):
        group = find(*names, **attributes)
        group.addoption = guarded(group.addoption)
        return group

    parser.addoption, parser.getgroup = guarded(parser.addoption), getgroup


def pytest_configure(config):
    for name, meaning in _MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    values = config.option
    values.stop_first = bool(getattr(values, "maxfail", 0))
    scene_report.remember(config, values)
    configure_logging(getattr(values, "log_level", None) or DEFAULT_LOG_LEVEL)


def _marked(item, name):
    """The arguments of a marker as a tuple; None: there is no such marker."""
    marker = item.get_closest_marker(name)
    if marker is None:
        return None
    given = marker.args[0] if marker.args else ()
    return tuple(given) if isinstance(given, (list, tuple, set)) else (given,)


def _reason_to_skip(item, platform, values):
    platforms = _marked(item, "platforms")
    if platforms is not None and platform not in platforms_of(platforms):
        return f"not for {platform}: for {', '.join(platforms)}"
    hardware = _marked(item, "requires_hardware")
    if hardware is not None and (not hardware or platform in hardware):
        return "needs a device"
    if _marked(item, "sdma") is not None:
        return "needs the copy engine of a device"
    if getattr(_function(item), "_st_scene_level", None) is not None:
        return "needs several hosts"
    manual = _marked(item, "manual")
    manual = manual is not None and (not manual or platform in manual)
    if not _is_scene(item) and not matches_manual(manual, values.manual):
        return "marked manual" if manual else "not marked manual"
    return _reason_of_filters(item, values)


def _reason_of_filters(item, values):
    runtime = getattr(item.cls, "_st_runtime", None) if item.cls else (_marked(item, "runtime") or (None,))[0]
    if values.runtime and runtime not in (None, values.runtime):
        return f"of runtime {runtime}"
    level = getattr(item.cls, "_st_level", None) if item.cls else None
    if values.level and level not in (None, values.level):
        return f"of level {level}"
    return None


def _function(item):
    return getattr(item, "function", item)


def _is_scene(item):
    return item.cls is not None and hasattr(item.cls, "_st_runtime")


def pytest_collection_modifyitems(config, items):
    complete(sys.modules.get("torch"))
    platform, values = config.option.platform, config.option
    if platform is None:
        return
    selection = Selection(platform, **scene_report.asked(config).selection)
    _list(items, scene_report.asked(config).report)
    for item in items:
        reason = _reason_to_skip(item, platform, values)
        if reason is None and _label(item) in selection.done:
            reason = "done by an earlier process"
        if reason is None and _is_scene(item):
            chosen = [case for case in item.cls.CASES if selection.has(item.cls.__name__, case)]
            item._scene_cases = chosen
            if not chosen and not _is_wanted_test(item, platform, values):
                reason = f"no case for {platform} with --manual {values.manual}"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def _list(items, report):
    """Gives the report the names of the cases."""
    for item in items:
        if _is_scene(item) and item.name == "test_run":
            for case in item.cls.CASES:
                report.listed(_case_label(item, case), platforms_of(case.get("platforms", ())), "scene")
        else:
            cases = item.cls.CASES if _is_scene(item) else ()
            platforms = _marked(item, "platforms") or {one for case in cases for one in case.get("platforms", ())}
            report.listed(_label(item), platforms_of(sorted(platforms)), "scene" if isinstance(item, GoldenItem) else "function")


def _case_label(item, case):
    return f"{item.cls.__name__}::{case['name']}"


def _labels(item):
    """The report's entry for a test: a test_run of the author's for all chosen cases."""
    if _is_scene(item) and item.name == "test_run":
        return [_case_label(item, case) for case in getattr(item, "_scene_cases", ())]
    return [_label(item)]


def _is_wanted_test(item, platform, values):
    """Whether a test other than test_run, which has no case of its own, is run: as the first of its class's cases would be."""
    cases = [case for case in item.cls.CASES if platform in platforms_of(case.get("platforms", ()))]
    if item.name == "test_run" or not cases:
        return False
    return any(matches_manual(is_manual(case, platform), values.manual) for case in cases)


def _label(item):
    """A test that is not a scene's test_run, as the report names it."""
    return f"{item.cls.__name__}::{item.name}" if item.cls else f"{item.path.stem}::{item.name}"


def _reports_itself(item):
    from .scene_test import SceneTestCase

    return _is_scene(item) and item.cls.test_run is SceneTestCase.test_run and item.name == "test_run"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    report = scene_report.asked(item.config).report
    if not _reports_itself(item):
        item._scene_start = time.perf_counter()
        for label in _labels(item):
            report.line(label, "begun")
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    made = (yield).get_result()
    report = scene_report.asked(item.config).report
    is_over = made.when == "call" or (made.when == "setup" and made.outcome != "passed")
    if not is_over or (_reports_itself(item) and (made.when == "call" and made.outcome != "skipped")):
        return
    state = {"passed": "passed", "failed": "failed"}.get(made.outcome, "skipped")
    reason = ""
    if call.excinfo is not None:
        reason = f"{call.excinfo.typename}: {call.excinfo.value}"
    for label in _labels(item):
        report.line(label, state, reason, time.perf_counter() - getattr(item, "_scene_start", time.perf_counter()))


class GoldenFile(pytest.File):
    """A program of February to April 2026."""

    def collect(self):
        yield GoldenItem.from_parent(self, name="default")


class GoldenItem(pytest.Item):
    """Its default case."""

    cls = None

    def runtest(self):
        from .february import GoldenExample

        example = GoldenExample(self.path.parent / "kernels", self.path, self.config.option.platform)
        for params in example.golden.params:
            example.run(params)


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.name == "golden.py" and (module_path.parent / "kernels" / "kernel_config.py").is_file():
        return GoldenFile.from_parent(parent, path=module_path)
    return None


class DevicePool:
    """Numbers of devices that tests take and give back. A simulator has as many as are asked for."""

    def __init__(self, numbers):
        self._free = list(numbers)
        self._next = max(numbers, default=-1) + 1

    def allocate(self, count=1):
        """Takes devices."""
        while len(self._free) < count:
            self._free.append(self._next)
            self._next += 1
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def release(self, numbers):
        """Gives devices back."""
        self._free = [*numbers, *self._free]


@pytest.fixture(scope="session")
def device_pool(request):
    return DevicePool(scene_worker.devices_of(request.config.option.device))


@pytest.fixture(scope="session")
def st_platform(request):
    if request.config.option.platform is None:
        pytest.skip("needs --platform a2a3sim or a5sim")
    return request.config.option.platform


@pytest.fixture
def st_device_ids(request, device_pool):
    numbers = device_pool.allocate(int((_marked(request.node, "device_count") or (1,))[0]))
    yield numbers
    device_pool.release(numbers)


@pytest.fixture(scope="session")
def _scene_workers():
    workers = {}
    yield workers
    for worker in workers.values():
        worker.close()


@pytest.fixture
def st_worker(request, st_platform, _scene_workers):
    cls = request.node.cls
    if not _is_scene(request.node):
        pytest.fail("st_worker is for scene tests: use st_device_ids, and make a Worker")
    if cls._st_level == 2:
        if cls._st_runtime not in _scene_workers:
            _scene_workers[cls._st_runtime] = scene_worker.level2(st_platform, cls._st_runtime, 0)
        yield _scene_workers[cls._st_runtime]
        return
    worker = scene_worker.level3(cls, st_platform, getattr(request.node, "_scene_cases", cls.CASES), [])
    try:
        yield worker
    finally:
        worker.close()
