"""What every benchmark prints alike: the machine, tables, means, and an optional chart."""

import importlib
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path


def machine() -> str:
    """The processor, the number of processors and the Python that the figures belong to."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}"


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that ratios call for."""
    return math.exp(sum(map(math.log, values)) / len(values))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns set flush: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        aligned = [cells[0].ljust(widths[0])]
        aligned += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join(aligned).rstrip()

    return "\n".join([line(headings), line(["-" * width for width in widths]), *map(line, rows)])


def chart(path: Path, title: str, ratios: Mapping[str, Mapping[str, float]]) -> None:
    """Draws `ratios[line][peer]` as bars on a logarithmic axis; needs matplotlib, from the `bench` extra."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise SystemExit(f"--chart needs matplotlib, which the `bench` extra installs ({error})") from None
    matplotlib.use("svg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    peers = list(dict.fromkeys(peer for line in ratios.values() for peer in line))
    height = 0.8 / max(len(peers), 1)
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.22 * len(ratios) * max(len(peers), 1)))
    for index, peer in enumerate(peers):
        lines = [(place, line[peer]) for place, line in enumerate(ratios.values()) if peer in line]
        heights = [place + (index - (len(peers) - 1) / 2) * height for place, _ in lines]
        # A bar begins at the baseline's 1 and grows to the right for a slower peer, to the left for a faster one.
        axes.barh(heights, [value - 1 for _, value in lines], left=1.0, height=height * 0.9, label=peer)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(pyplot.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(pyplot.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(pyplot.NullFormatter())
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(ratios)), list(ratios))
    axes.invert_yaxis()
    axes.set_xlabel("time, relative (further left is faster)")
    axes.set_title(title)
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
