"""Collects examples for pytest: a golden.py next to kernels/kernel_config.py is one test for each runtime and case."""

from pathlib import Path

import pytest


def pytest_collect_file(parent, file_path):
    if file_path.name == "golden.py" and (file_path.parent / "kernels" / "kernel_config.py").is_file():
        return ExampleFile.from_parent(parent, path=file_path)
    return None


class ExampleFile(pytest.File):
    """A golden.py."""

    def collect(self):
        from .runner import Example

        kernels = Path(self.path).parent / "kernels"
        first = Example(kernels, self.path)
        for runtime in first.config.runtimes:
            example = Example(kernels, self.path, runtime=runtime)
            for number, params in enumerate(example.golden.params):
                name = f"{runtime}-{number}"
                yield ExampleItem.from_parent(self, name=name, example=example, params=params)


class ExampleItem(pytest.Item):
    """One case on one runtime."""

    def __init__(self, *, example, params, **keywords):
        super().__init__(**keywords)
        self.example = example
        self.params = params

    def runtest(self):
        self.example.run(self.params)

    def repr_failure(self, excinfo, style=None):
        from .errors import CompileError, ConfigError, MismatchError, PtoError

        if isinstance(excinfo.value, (CompileError, ConfigError, MismatchError, PtoError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"{self.path.parent.name}: {self.name} {self.params or ''}".rstrip()
