"""`@scene_test` and `SceneTestCase`: programs with cases, run and compared with what the author computes.

A class declares CALLABLE and CASES, makes its arguments in `generate_args` and the expected outputs in `compute_golden`. Names
with an underscore at the end of this file are those that tests of the field import besides.
"""

import sys
from enum import Enum
from pathlib import Path

from _task_interface import CallConfig
from pto_runtime.errors import ConfigError

from . import scene_args, scene_build, scene_outputs, scene_report, scene_worker
from .comparison import compare
from .scene_case import Selection, check_cases
from .scene_command import run_file
from .scene_run import Options, run_cases, run_level2, run_level3
from .task_args import TaskArgsBuilder


class SceneTestLevel(Enum):
    """What a test needs beyond one process."""

    CHIP = 2
    HOST = 3
    NETWORK1 = 4


def scene_level(level):
    """Marks a function or class with what it needs."""

    def mark(target):
        target._st_scene_level = level
        return target

    return mark


def scene_test(level=2, runtime="tensormap_and_ringbuffer"):
    """Makes a subclass of SceneTestCase a scene test of a level and a runtime."""
    if level not in (2, 3):
        raise ConfigError(f"a scene test of level {level}: levels 2 and 3 are here")

    def mark(cls):
        cls._st_level, cls._st_runtime = level, runtime
        check_cases(cls)
        return cls

    return mark


class SceneTestCase:
    """The base of scene tests."""

    CALLABLE: dict = {}
    CASES: list = []
    RTOL = 1e-5
    ATOL = 1e-5
    RUNTIME_ENV: dict = {}
    SKIP_GOLDEN = False

    def generate_args(self, params):
        """The arguments of a case: a TaskArgsBuilder."""
        raise NotImplementedError(f"{type(self).__name__} has no generate_args")

    def compute_golden(self, args, params):
        """Writes into a copy of the arguments what the outputs must be."""
        raise NotImplementedError(f"{type(self).__name__} has no compute_golden")

    def compare_outputs(self, test_args, golden_args, output_names, params):
        """Compares the outputs with RTOL and ATOL; a test may have a rule of its own."""
        compare(test_args, golden_args, output_names, self.RTOL, self.ATOL)

    @classmethod
    def compile_chip_callable(cls, platform):
        """The same, as programs of April 2026 call it."""
        return scene_build.chip_of(cls, platform)

    @classmethod
    def _create_worker(cls, platform, device_id=0, build=False):
        return scene_worker.level2(platform, cls._st_runtime, device_id)

    def build_callable(self, platform):
        """The compiled orchestration with its kernels."""
        return scene_build.chip_of(type(self), platform)

    def _build_config(self, config_dict, **diagnostics):
        config = CallConfig()
        for name in ("aicpu_thread_num", "block_dim"):
            setattr(config, name, config_dict.get(name, getattr(config, name)))
        for name, value in {**self.RUNTIME_ENV, **config_dict.get("runtime_env", {})}.items():
            setattr(config.runtime_env, name.lower().removeprefix("pto2_"), value)
        for name, value in diagnostics.items():
            setattr(config, name, value)
        return config

    def _run_and_validate_l2(self, worker, callable_obj, case, **options):
        run_level2(self, worker, callable_obj, case, Options(**options))

    def _run_and_validate_l3(self, worker, callables, case, **options):
        run_level3(self, worker, callables, case, Options(**options))

    def _matching_cases(self, st_platform, request):
        selection = Selection(st_platform, **scene_report.asked(request.config).selection)
        return [case for case in self.CASES if selection.has(type(self).__name__, case)]

    def _effective_enable_dep_gen(self, request):
        return bool(scene_report.asked(request.config).diagnostics.get("enable_dep_gen"))

    def test_run(self, st_platform, st_worker, request):
        """Runs all chosen cases; reports each that failed."""
        run_cases(self, st_platform, st_worker, self._matching_cases(st_platform, request), scene_report.asked(request.config))

    @staticmethod
    def run_module(module_name):
        """The command line of a test file; ends the process."""
        sys.exit(run_file(SceneTestCase, sys.modules[module_name]))


# What tests of the field import by these names.
_outputs_dir = scene_outputs.outputs_dir
_sanitize_for_filename = scene_outputs.sanitize_for_filename
_build_chip_task_args = scene_args.task_args
_compare_outputs = compare
_rehosted_ref_for = scene_args.tensor_of
_rehosted_ref = scene_args.named_tensor


def _compile_chip_callable_from_spec(spec, platform, runtime, cache_key=None):
    return scene_build.compile_chip(spec, Path(), platform, runtime, "the program")


def _build_l2_ref_args(args, signature, _worker=None):
    return scene_args.task_args(args, signature)


def _build_l3_task_args(args, signature, _worker=None):
    return scene_args.task_args(args, signature)


def _rehosted_buffer_for(args, array):
    return scene_args.tensor_of(args, array).buffer


__all__ = ["SceneTestCase", "SceneTestLevel", "TaskArgsBuilder", "scene_level", "scene_test"]
