"""Runs an example of C++ sources, and checks its results: see docs/how-to/python.md.

    python examples/scripts/run_example.py -k DIR/kernels -g DIR/golden.py -p a2a3sim [-r RUNTIME] [-d DEVICE] [-v]
"""

import sys

try:
    from pto_runtime.runner import main
except ImportError as error:
    sys.exit(f"the Python package is not installed ({error}): pip install maturin && pip install ./bindings/python")

if __name__ == "__main__":
    sys.exit(main())
