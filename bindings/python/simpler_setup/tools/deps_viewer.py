"""`deps.json` for people: a text, or a page with a drawing.

python -m simpler_setup.tools.deps_viewer outputs/CASE/deps.json --format text
"""

import argparse
import html
import shutil
import subprocess
import sys
from pathlib import Path

from simpler.deps_text import dot_of, text_of


def page_of(text, direction, engine):
    """A page with the drawing; SystemExit where Graphviz is missing."""
    if shutil.which(engine) is None:
        raise SystemExit(f"error: the drawing needs Graphviz's {engine}: run `apt-get install graphviz`, or use --format text")
    drawn = subprocess.run([engine, "-Tsvg"], input=dot_of(text, direction), capture_output=True, text=True, check=True).stdout
    return f"<!doctype html><title>tasks</title><body>{drawn}<pre>{html.escape(text_of(text))}</pre></body>"


def main(given=None):
    """0: it is written."""
    parser = argparse.ArgumentParser(
        description="Shows which tasks wait for which.", epilog="example: python -m simpler_setup.tools.deps_viewer outputs/CASE/deps.json"
    )
    parser.add_argument("deps", help="a deps.json")
    parser.add_argument("--format", choices=("text", "html"), default="text")
    parser.add_argument("--direction", choices=("TB", "LR"), help="of the drawing")
    parser.add_argument("--engine", help="Graphviz's program for the drawing (default dot)")
    parser.add_argument("-o", "--output", help="the file to write (default deps_viewer.txt or .html beside deps.json)")
    values = parser.parse_args(given)
    for option in ("direction", "engine"):
        if values.format == "text" and getattr(values, option):
            parser.error(f"--{option} is only valid with --format html")
    source = Path(values.deps)
    suffix = "txt" if values.format == "text" else "html"
    target = Path(values.output) if values.output else source.with_name(f"deps_viewer.{suffix}")
    text = source.read_text()
    made = text_of(text) if values.format == "text" else page_of(text, values.direction or "TB", values.engine or "dot")
    target.write_text(made)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
