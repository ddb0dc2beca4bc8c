"""Workers for scene tests: one of level 2 for each runtime, kept open; one of level 3 for each test."""

from simpler.worker import Worker

from . import scene_build
from .scene_case import device_count


def level2(platform, runtime, device):
    """An open worker with one device."""
    worker = Worker(2, platform=platform, runtime=runtime, device_id=device)
    worker.init()
    return worker


def level3(cls, platform, cases, devices):
    """An open worker with the devices and threads that the largest of these cases needs."""
    count = max((device_count(case) for case in cases), default=1)
    subs = max((int(case.get("config", {}).get("num_sub_workers", 0)) for case in cases), default=0)
    # Devices of a simulator need not exist: any number will do.
    numbers = [*devices, *range(len(devices), count)][:count]
    worker = Worker(3, platform=platform, runtime=cls._st_runtime, device_ids=numbers, num_sub_workers=subs)
    targets, signatures = scene_build.callables_of(cls, platform)
    handles = {name: worker.register(target) for name, target in targets.items()}
    chips = {name: handle for name, handle in handles.items() if not handle.is_python}
    cls._st_chip_handles = {**chips, **{f"{name}_sig": one for name, one in signatures.items()}}
    cls._st_sub_handles = {name: handle for name, handle in handles.items() if handle.is_python}
    worker.init()
    return worker


def devices_of(text):
    """Device numbers of `0`, `0-3` or `0,2`."""
    numbers = []
    for part in str(text).split(","):
        first, dash, last = part.partition("-")
        numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    return numbers
