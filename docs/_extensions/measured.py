"""The directive ``measured``: where the figures of a table come from, read from the saved results themselves."""

import json
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from _seeds import seeds


class Measured(Directive):
    """A line under a table for every saved result: how, when and where it was measured."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Paths below benchmarks/, with spaces between."""
        container = nodes.container(classes=["measured"])
        container += [self._line(name) for name in self.arguments[0].split()]
        return [container]

    def _line(self, name: str) -> nodes.paragraph:
        path = BENCHMARKS / name
        record = json.loads(path.read_text())
        self.state.document.settings.env.note_dependency(str(path))
        machine, versions = record["machine"], record["versions"]
        told = ", ".join(f"{package} {number}" for package, number in versions.items() if package != "latentviews")
        line = nodes.paragraph()
        line += nodes.Text("Measured by ")
        line += nodes.literal(text=record["command"])
        line += nodes.Text(
            f" at commit {record['commit'][:8]} on {record['date']}; {machine['cpu'].replace('(R)', '')}, "
            f"{machine['cores']} cores; {told}; {record.get('seeds') or seeds(record['command'])}. Saved in "
        )
        line += nodes.literal(text=f"benchmarks/{name}")
        line += nodes.Text(".")
        return line


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
