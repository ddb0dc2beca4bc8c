"""The cases of a scene test, one by one: arguments, run, golden, comparison; as often as asked."""

from dataclasses import dataclass, fields

from . import scene_args, scene_build, scene_outputs


@dataclass
class Options:
    """How a case is run."""

    rounds: int = 1
    skip_golden: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    output_prefix: str = ""

    def diagnostics(self):
        """Those that the run's configuration takes, where they are set."""
        ours = ("rounds", "skip_golden")
        return {one.name: value for one in fields(self) if one.name not in ours and (value := getattr(self, one.name))}


def _is_compared(test, case, options):
    return not (options.skip_golden or test.SKIP_GOLDEN or case.get("skip_golden", False))


def _golden(test, args, params):
    golden = args.clone()
    test.compute_golden(golden, params)
    return golden


def run_level2(test, worker, chip, case, options):
    """Runs a case on one device and compares what the orchestration writes."""
    params = case.get("params", {})
    config = test._build_config(case.get("config", {}), **options.diagnostics())
    handle = worker.register(chip)
    try:
        for _ in range(max(options.rounds, 1)):
            args = test.generate_args(params)
            golden = _golden(test, args, params) if _is_compared(test, case, options) else None
            made, outputs = scene_args.task_args(args, test.CALLABLE["orchestration"].get("signature", ()))
            worker.run(handle, made, config)
            if golden is not None:
                test.compare_outputs(args, golden, outputs, params)
    finally:
        worker.unregister(handle)


class Callables:
    """What a level-3 orchestration function sees: handles by name, signatures as NAME_sig, and `keep`."""

    def __init__(self, handles, signatures):
        self._kept = []
        for name, handle in handles.items():
            setattr(self, name, handle)
        for name, signature in signatures.items():
            setattr(self, f"{name}_sig", signature)

    def keep(self, *things):
        """Keeps things alive until the case ends."""
        self._kept.extend(things)


def registered(worker, callables):
    """Registers the callables of a level-3 test; handles by name and the signatures."""
    targets, signatures = callables
    return {name: worker.register(target) for name, target in targets.items()}, signatures


def run_level3(test, worker, callables, case, options):
    """Runs a case's orchestration function on several devices and compares all tensors."""
    params = case.get("params", {})
    config = test._build_config(case.get("config", {}), **options.diagnostics())
    handles, signatures = registered(worker, callables)
    function = test.CALLABLE["orchestration"]
    try:
        for _ in range(max(options.rounds, 1)):
            args = test.generate_args(params)
            golden = _golden(test, args, params) if _is_compared(test, case, options) else None
            seen = Callables(handles, signatures)
            worker.run(lambda orch, _args, cfg, a=args, c=seen: function(orch, c, a, cfg), None, config)
            if golden is not None:
                test.compare_outputs(args, golden, args.tensor_names(), params)
    finally:
        for handle in handles.values():
            worker.unregister(handle)


def run_cases(test, platform, worker, cases, asked):
    """Runs the cases of a test one by one, reports each, and raises the failures together at the end."""
    failed = []
    for case in cases:
        label = f"{type(test).__name__}::{case['name']}"
        with asked.report.case(label) as ended:
            try:
                _run_case(test, platform, worker, case, asked)
            except Exception as error:
                ended.failed(error)
                failed.append((label, error))
        if failed and asked.stops_at_first:
            break
    if len(failed) == 1:
        raise failed[0][1]
    if failed:
        texts = "\n".join(f"{label}: {type(error).__name__}: {error}" for label, error in failed)
        raise AssertionError(f"{len(failed)} of {len(cases)} cases failed:\n{texts}")


def _run_case(test, platform, worker, case, asked):
    options = {"rounds": asked.rounds, "skip_golden": asked.skip_golden}
    # Tests with a run of their own know those of their month.
    options.update({name: value for name, value in asked.diagnostics.items() if value})
    if any(asked.diagnostics.values()):
        options["output_prefix"] = str(scene_outputs.new_folder(f"{type(test).__name__}_{case['name']}"))
    if test._st_level == 2:
        test._run_and_validate_l2(worker, test.build_callable(platform), case, **options)
    else:
        test._run_and_validate_l3(worker, scene_build.callables_of(type(test), platform), case, **options)
