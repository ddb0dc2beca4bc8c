"""`@kernel`: a function of tile operations, which is traced; or a body in C++."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, Sequence

from . import kernel_trace, tracing
from .errors import KernelError
from .foreign import CppSource
from .kernel_trace import KernelIR, KernelTrace, OpKind, Value  # noqa: F401
from .kernel_types import (  # noqa: F401
    Constexpr,
    In,
    InOut,
    KernelParam,
    Out,
    Scalar,
    ScalarType,
    Tile,
    TileType,
    extract_kernel_params,
)
from .pto_ops import pto  # noqa: F401
from .ptoisa_ops import ptoisa  # noqa: F401


class CompiledKernel:
    """A traced kernel: its operations, and its textual form."""

    def __init__(self, ir: KernelIR, text: str, whole: set[str]) -> None:
        self.ir = ir
        self.text = text
        #: Parameters whose tiles must not be partial.
        self.whole = whole


class Kernel:
    """A kernel. In a `@workload` function a call makes a task; elsewhere it gives the trace."""

    def __init__(
        self, func: Callable[..., Any], cpp: Optional[CppSource] = None, options: Optional[dict[str, Any]] = None
    ) -> None:
        functools.update_wrapper(self, func)
        self.name = func.__name__
        self.func = func
        self.cpp = cpp
        self.options = options or {}
        self.params = extract_kernel_params(func)
        declared = inspect.signature(func).parameters
        annotated = (name for name, param in declared.items() if param.annotation is not param.empty)
        by_name = {param.name: param for param in self.params}
        #: The parameters that are annotated.
        self.signature = {name: by_name[name] for name in annotated}
        #: What a parameter is where the call does not say it.
        self.defaults = {p.name: p.default for p in self.params if p.default is not inspect.Parameter.empty}
        self.is_ptoisa = False
        self._compiled: dict[tuple, CompiledKernel] = {}

    def tile_of(self, name: str) -> Optional[TileType]:
        """The tile of a parameter, if it is one."""
        return next((param.tile for param in self.params if param.name == name), None)

    def trace(self) -> KernelIR:
        """The operations of the kernel."""
        if self.cpp is not None:
            values = KernelTrace(self.name)
            for param in self.params:
                values.param(param)
            return values.ir
        return self.compiled({}).ir

    def compiled(self, constants: dict[str, Any]) -> CompiledKernel:
        """The kernel with these values of its `Constexpr` parameters."""
        key = tuple(sorted(constants.items()))
        if key not in self._compiled:
            self._compiled[key] = self._trace(constants)
        return self._compiled[key]

    def _trace(self, constants: dict[str, Any]) -> CompiledKernel:
        trace = KernelTrace(self.name)
        values = []
        for param in self.params:
            is_constant = param.direction == "constexpr" or param.type is int
            if is_constant and param.name not in constants and param.name not in self.defaults:
                raise KernelError(f"Kernel {self.name}: the constant {param.name} has no value. Give it in the call.")
            if is_constant:
                values.append(constants.get(param.name, self.defaults.get(param.name)))
            else:
                values.append(trace.param(param))
        kernel_trace.begin(trace)
        try:
            self.func(*values)
        finally:
            kernel_trace.end()
        try:
            return CompiledKernel(trace.ir, trace.builder.finish(), trace.whole)
        except ValueError as error:
            code = self.func.__code__
            raise KernelError(f"{code.co_filename}:{code.co_firstlineno}: {error}") from None

    def compile(self) -> None:
        """Kernels are compiled with their workload."""
        raise RuntimeError(f"Kernel {self.name} is compiled with a workload. Call it in a @workload function.")

    def bound(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name: positional ones are those of the parameters in their order."""
        if len(args) > len(self.params):
            raise TypeError(f"Kernel {self.name} has {len(self.params)} parameters, and the call gives {len(args)}.")
        by_order = {param.name: arg for param, arg in zip(self.params, args)}
        twice = sorted(by_order.keys() & kwargs.keys())
        if twice:
            raise TypeError(f"Kernel {self.name} gets the argument {twice[0]} twice.")
        return {**by_order, **kwargs}

    def __getitem__(self, axes: Any) -> KernelCall:
        return KernelCall(self, axes if isinstance(axes, tuple) else (axes,))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tracing.current() is None:
            return self.trace()
        return self[()](*args, **kwargs)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"


KernelRef = Kernel


class KernelCall:
    """A kernel with axes: `k[b, h]`."""

    def __init__(self, kernel_ref: Kernel, axes: tuple) -> None:
        self.kernel_ref = kernel_ref
        self.axes = axes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        building = tracing.current()
        kernel = self.kernel_ref
        if building is None:
            raise RuntimeError(f"{kernel.name}[..](..) makes a task. Call it in a @workload function.")
        resources = kernel.bound(args, kwargs)
        if building.checker is not None:
            building.checker.check_kernel_call(kernel, self.axes, resources)
        return building.add(building.node("task", kernel=kernel, params=list(self.axes), resources=resources))


def kernel(
    fn: Optional[Callable[..., Any]] = None,
    *,
    cpp_src: Optional[str] = None,
    cpp_body_path: Optional[str] = None,
    cpp_tu_path: Optional[str] = None,
    cpp_includes: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Makes a kernel of a function, or of a body in C++: then the function only declares the parameters."""
    cpp = CppSource.of(cpp_src, cpp_body_path, cpp_tu_path, tuple(cpp_includes or ()))
    if fn is None:
        return lambda fn: Kernel(fn, cpp, options)
    return Kernel(fn, cpp, options)


jit_kernel = kernel


def ptoisa_kernel(fn: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """Makes a kernel of a function of `ptoisa` instructions, which is traced now."""
    if fn is None:
        return functools.partial(ptoisa_kernel, **options)
    made = Kernel(fn, None, options)
    for param in made.params:
        if param.tile is None and param.scalar is None:
            raise TypeError(
                f"Kernel {made.name}, parameter {param.name}: a @ptoisa_kernel takes tiles and scalars, not {param.type!r}."
            )
    made.is_ptoisa = True
    made.compiled({})
    return made
