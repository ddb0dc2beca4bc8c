"""Programs of workloads: what a file `.ptop` holds, made from a text or from a workload that was checked."""

from ._native import Program


def program_of(workload, *, roles=None, layouts=None, constants=None, target=None):
    """The program of a workload: its text, or a `CheckedWorkload`.

    roles: tensor -> "output", "updated" or "temporary", where the writer cannot know better; layouts: tensor -> "nz:500x300", "column-major", "on-chip,
    row-major", ..; constants: tensor -> array whose elements travel in the file; target: the only target, otherwise any.
    """
    chosen = {
        "roles": dict(roles or {}),
        "layouts": dict(layouts or {}),
        "constants": dict(constants or {}),
        "target": target,
    }
    return Program._of(workload, chosen)
