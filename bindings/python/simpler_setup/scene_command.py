"""The command line of a test file: `python test_x.py -p a2a3sim`."""

import argparse
import sys

from pto_runtime.errors import CompileError, ConfigError

from . import scene_report, scene_worker
from .log_config import DEFAULT_LOG_LEVEL, configure_logging
from .scene_case import Selection
from .scene_run import run_cases


def _parser():
    parser = argparse.ArgumentParser(
        description="Runs the cases of this file.", epilog="example: python %(prog)s -p a2a3sim --case TestVectorExample"
    )
    parser.add_argument("-p", "--platform", required=True, help="a2a3sim or a5sim, the simulators")
    parser.add_argument("-d", "--device", default="0", help="a device, a range 0-3, or a list 0,2 (default 0)")
    parser.add_argument("-x", "--exitfirst", dest="stop_first", action="store_true", help="stop at the first failure")
    parser.add_argument("--log-level", default=DEFAULT_LOG_LEVEL, help="debug, info, timing (default), warn, error, null")
    for names, options in scene_report.OPTIONS:
        parser.add_argument(*names, **options)
    return parser


def _tests(base, module):
    """The scene tests that a file defines, in order: the subclasses of `base`, which is SceneTestCase."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return [cls for cls in found if hasattr(cls, "_st_runtime") and cls.__module__ == module.__name__]


class _Values(argparse.Namespace):
    """The options of the command, which stand for pytest's configuration as well."""

    def getoption(self, name, default=None):
        """An option by its name on the command line."""
        return getattr(self, name.lstrip("-").replace("-", "_"), default)


class _Request:
    """Replaces pytest's request, which tests of their own ask for the configuration."""

    def __init__(self, config):
        self.config = config


def run_file(base, module, given=None):
    """Runs what the command line asks for, of the tests that `_tests` finds. 0: all passed; 1: a case failed; 2: nothing could be run."""
    values = _parser().parse_args(given, _Values())
    configure_logging(values.log_level)
    try:
        devices = scene_worker.devices_of(values.device)
        return _run_all(_tests(base, module), base, values, devices)
    except (ConfigError, CompileError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run_all(tests, base, values, devices):
    asked = scene_report.remember(values, values, says=print)
    selection = Selection(values.platform, **asked.selection)
    found, is_right = 0, True
    for cls in tests:
        if (values.runtime or cls._st_runtime) != cls._st_runtime or (values.level or cls._st_level) != cls._st_level:
            continue
        cases = [case for case in cls.CASES if selection.has(cls.__name__, case)]
        found += len(cases)
        if cases and not (is_right := _run_class(cls, base, cases, values, devices) and is_right) and asked.stops_at_first:
            break
    if not found:
        print(f"error: no case of this file fits: platform {values.platform}, --manual {values.manual}", file=sys.stderr)
        return 2
    return 0 if is_right else 1


def _run_class(cls, base, cases, values, devices):
    asked = scene_report.asked(values)
    if cls._st_level == 2:
        worker = scene_worker.level2(values.platform, cls._st_runtime, devices[0])
    else:
        worker = scene_worker.level3(cls, values.platform, cases, devices)
    try:
        if cls.test_run is base.test_run:
            run_cases(cls(), values.platform, worker, cases, asked)
        else:
            _run_own(cls(), values, worker)
    except Exception as error:
        print(f"{cls.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    finally:
        worker.close()
    return True


def _run_own(test, values, worker):
    """Calls a test_run of the author's with what it names."""
    fixtures = {"st_platform": values.platform, "st_worker": worker, "request": _Request(values)}
    code = test.test_run.__func__.__code__
    wanted = code.co_varnames[1 : code.co_argcount]
    test.test_run(**{name: fixtures[name] for name in wanted})
