"""The tree on a real terminal: coloured once, or as one live picture. The only user of rich here.

Imported only when stdout is a terminal. rich honours NO_COLOR and TERM=dumb. The picture shows as much detail as fits
the screen, and says below it why groups wait, because long lines of the tree are cut there.
"""

from collections.abc import Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from pyjobset.cli.output import printable
from pyjobset.cli.treetext import ASCII, DETAILS, LINES, Branches, Row, lines, rows
from pyjobset.cli.view import JobSetView

_COLOURS = {"good": "green", "bad": "bold red", "busy": "yellow", "calm": ""}


def print_view(view: JobSetView, *, is_folded: bool) -> None:
    """Once, in full: long lines go on in the next row of the terminal, so that nothing is lost."""
    console = Console(highlight=False)
    for text in _texts(rows(view, branches=_branches(console), is_folded=is_folded)):
        console.print(text, soft_wrap=True)


def _branches(console: Console) -> Branches:
    return LINES if "utf" in console.encoding else ASCII


class Picture:
    """A live display, as a context manager. The last picture stays on the screen."""

    def __init__(self, *, is_folded: bool = True) -> None:
        self._is_folded = is_folded
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, view: JobSetView) -> None:
        self._live.update(self._fit(view), refresh=True)

    def _fit(self, view: JobSetView) -> Group:
        whys = [Text(printable(line), style="yellow") for line in _whys(view)]
        room = self._console.height - 2 - len(whys)
        for detail in DETAILS:
            tree = rows(view, detail, _branches(self._console), is_folded=self._is_folded)
            if len(tree) <= room:
                break
        return Group(*_texts(tree, cut=True), *whys)


def _whys(view: JobSetView) -> list[str]:
    """Each reason once, with one of its groups."""
    names: dict[str, list[str]] = {}
    for group in view.groups:
        if group.why:
            names.setdefault(group.why, []).append(group.name)
    return [f"{n[0]}{f' and {len(n) - 1} more wait' if len(n) > 1 else ' waits'}: {why}" for why, n in names.items()]


def _texts(tree: Sequence[Row], *, cut: bool = False) -> list[Text]:
    return [
        Text(line, style=_COLOURS[row.style], no_wrap=cut, overflow="ellipsis" if cut else "fold")
        for row, line in zip(tree, lines(tree), strict=True)
    ]
