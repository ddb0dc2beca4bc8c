"""The table of a folder's run: each case once, with the simulator that ran it, or why none did."""


class Table:
    """Cases by file. A case that passed on one simulator counts; one that needs hardware is counted apart."""

    def __init__(self, kept=None):
        self._rows = kept or {}
        self._known = frozenset(self._rows)

    def kept(self):
        """All that the table holds, for `Table(kept)` in a later run."""
        return self._rows

    def is_known(self, name):
        """Whether an earlier run has ended this file."""
        return name in self._known

    def forget_failed(self):
        """Takes failed cases out, so that their files are run again; what passed stays."""
        files = {row["file"] for row in self.rows() if row["state"] == "failed"}
        for name in files:
            rows = self._rows[name]
            self._rows[name] = {case: row for case, row in rows.items() if row["state"] == "passed"}
        self._known -= files

    def add(self, name, platform, ended):
        """Adds what became of a file's cases on a platform."""
        rows = self._rows.setdefault(name, {})
        for case, line in ended.items():
            before = rows.get(case)
            if before is None or before["state"] in ("listed", "skipped"):
                rows[case] = {**line, "platform": platform, "platforms": line.get("platforms") or (before or {}).get("platforms")}

    def add_hardware(self, name, count):
        """Adds so many cases of a file that no simulator is named for."""
        for number in range(count):
            row = {"case": f"number {number + 1}", "state": "listed", "reason": "", "seconds": 0, "kind": "scene", "platforms": ()}
            self._rows.setdefault(name, {})[row["case"]] = {**row, "platform": ""}

    def passed_scenes(self):
        """How many scene cases passed."""
        return sum(row["state"] == "passed" and row.get("kind") == "scene" for row in self.rows())

    def done(self, name):
        """Cases of a file that need no other simulator."""
        return {case for case, row in self._rows.get(name, {}).items() if row["state"] in ("passed", "failed")}

    def rows(self):
        """All rows as dicts."""
        return [{"file": name, **row, "state": _state(row)} for name, rows in self._rows.items() for row in rows.values()]

    def counted(self, name=None):
        """How many cases have each state, of one file or of all."""
        counts = {}
        for row in self.rows():
            if name in (None, row["file"]):
                counts[row["state"]] = counts.get(row["state"], 0) + 1
        return counts

    def line_of(self, name):
        """One file in a few words."""
        counts = self.counted(name)
        return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "no cases"

    def is_right(self):
        """Whether nothing failed."""
        return not self.counted().get("failed")

    def text(self):
        """All that did not pass with reasons, and the sums."""
        lines = []
        for row in self.rows():
            if row["state"] == "failed":
                reason = " ".join(str(row["reason"]).split())
                lines.append(f"failed  {row['file']} {row['case']} ({row['platform']}): {reason[:300]}")
        rows = self.rows()
        scenes = [row for row in rows if row.get("kind") == "scene"]
        for title, some in (("scene cases", scenes), ("test functions", [row for row in rows if row not in scenes])):
            counts = {state: sum(row["state"] == state for row in some) for state in ("passed", "failed", "hardware only", "skipped")}
            able = counts["passed"] + counts["failed"]
            rest = f"{counts['hardware only']} need hardware, {counts['skipped']} skip themselves"
            lines.append(f"{title}: {counts['passed']} of {able} that a simulator can run passed; {rest}")
        return "\n".join(lines)


def _state(row):
    if row["state"] in ("listed", "skipped"):
        platforms = row.get("platforms") or ()
        return "skipped" if any(one.endswith("sim") for one in platforms) else "hardware only"
    return row["state"]
