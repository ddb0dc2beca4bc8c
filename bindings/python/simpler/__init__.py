"""The field's Python interface of 2026-08, over our runtime: workers, task arguments, orchestrators of several devices.

```text
task_interface.py  the names that programs import     buffer.py  memory     arrays.py  torch and NumPy
worker.py          Worker of levels 2 and 3           chip_worker.py  one device and its callables
orchestrator.py    the `orch` of a level-3 run        task_graph.py  its tasks and edges     domain.py  shared windows
failure.py         errors with the field's texts      _log.py  levels of the log
diagnostics.py     files that a run keeps             deps_text.py   one of them as a text
```
The modules are written from the interface; nothing in them is the field's code. See docs/how-to/simpler-python.md.
"""
