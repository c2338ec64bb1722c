"""``latentviews fit``: what is asked about a file is asked, and told, before the models are imported."""

import argparse
from dataclasses import replace

from latentviews._sentences import counted
from latentviews.cli.columns import ASKED, ask_at_terminal, read_columns, settle
from latentviews.cli.common import gathered_warnings, tell
from latentviews.cli.hints import layout_notes
from latentviews.cli.options import CommandError
from latentviews.cli.progress import Progress
from latentviews.cli.wanted import parse_columns, refuse_copulas, refuse_few

FEWEST_ROWS = 2  # of a fit


def run(arguments: argparse.Namespace) -> None:
    """Read, settle which columns are used, fit, write."""
    wanted = parse_columns(arguments)
    told: list[str] = []
    with Progress(not arguments.quiet, arguments.started) as progress:
        with progress.stage("reading"), gathered_warnings(told), arguments.leaving_at_once():
            chosen = read_columns(arguments, wanted)
        if wanted.columns is None and chosen.table.format in ASKED:
            with progress.paused():
                chosen = settle(chosen, ask_at_terminal(arguments))
                chosen = replace(chosen, notes=(*chosen.notes, *layout_notes(chosen.table, arguments.file)))
        progress.say(chosen.notes)
        if chosen.table.n_rows < FEWEST_ROWS:
            rows = counted(chosen.table.n_rows, "row")
            raise CommandError(f"{arguments.file} has {rows}, and a fit needs at least {FEWEST_ROWS}.")
        refuse_copulas(arguments, chosen.codes)
        if not isinstance(wanted.views, list):  # every column is a view, or fewer are
            refuse_few(chosen.table.columns, arguments, chosen.codes, f"{arguments.file}: a fit")
        with progress.paused(), progress.timed("starting"), arguments.importing():
            from latentviews.cli.fit import fit_and_write
        text, summary = fit_and_write(chosen, wanted, told, arguments, progress)
    tell(arguments, text, summary)
