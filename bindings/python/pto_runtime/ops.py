"""Operators on arrays of a device (docs/how-to/operators.md).

    import numpy as np
    from pto_runtime import ops

    x = ops.array(np.eye(3, dtype=np.float32))
    y = ops.softmax(x @ x + 1, axis=-1)
    print(np.asarray(y))

There is a function for each operator: `ops.operators()` has all of them, and `help(ops.softmax)` tells of one. Functions return at once; who looks at
elements waits.
"""

from .operator_arrays import Array, array, default_stream, from_dlpack, from_tensor, operators

globals().update(operators())
__all__ = ["Array", "array", "default_stream", "from_dlpack", "from_tensor", "operators", *operators()]
