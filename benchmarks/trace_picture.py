"""Draws docs/trace.png: a recording of a parallel merge sort on two workers."""

import argparse
import array
import random
from pathlib import Path
from typing import Any

import greenbeat as gb
from greenbeat.tracing.timeline import Timeline

SHADES = ("#4878a8", "#6aa84f", "#e69138", "#8e7cc3", "#c27ba0", "#45818e", "#a61c00", "#bf9000")


@gb.kernel
def insertion(a: gb.Array[gb.i64], first: int, end: int) -> None:
    for i in range(first + 1, end):
        value = a[i]
        j = i
        while j > first and a[j - 1] > value:
            a[j] = a[j - 1]
            j -= 1
        a[j] = value


@gb.kernel
def merge(a: gb.Array[gb.i64], b: gb.Array[gb.i64], first: int, middle: int, end: int) -> None:
    i = first
    j = middle
    for k in range(first, end):
        if j >= end or (i < middle and a[i] <= a[j]):
            b[k] = a[i]
            i += 1
        else:
            b[k] = a[j]
            j += 1
    for k in range(first, end):
        a[k] = b[k]


@gb.kernel
def sort(a: gb.Array[gb.i64], b: gb.Array[gb.i64], first: int, end: int) -> None:
    if end - first <= 24:
        insertion(a, first, end)
    else:
        middle = (first + end) // 2
        gb.par(sort(a, b, first, middle), sort(a, b, middle, end))
        merge(a, b, first, middle, end)


def record(size: int, tries: int) -> Timeline:
    """Sort so many numbers on two workers, several times; the shortest recording."""
    best: Timeline | None = None
    room = array.array("q", bytes(8 * size))
    with gb.Runtime(workers=2):
        for _ in range(tries):
            values = array.array("q", (random.randrange(1 << 40) for _ in range(size)))
            with gb.trace() as trace:
                sort(values, room, 0, size)
            timeline = trace.timeline
            assert timeline is not None
            if best is None or timeline.duration < best.duration:
                best = timeline
    assert best is not None
    return best


def draw(events: list[dict[str, Any]], path: Path) -> None:
    """Tracks from top to bottom; arrows from promotions to the tasks that they made."""
    from matplotlib import pyplot

    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    used = [tid for tid in names if any(e["tid"] == tid and e["cat"] == "task" for e in slices)]
    whole = max(event["ts"] + event["dur"] for event in slices) / 1000
    rows = {tid: len(used) - 1 - place for place, tid in enumerate(sorted(used, reverse=True))}
    figure, axes = pyplot.subplots(figsize=(10, 1.1 + 0.75 * len(rows)), dpi=110)
    for event in slices:
        if event["tid"] not in rows:
            continue
        row, start, length = rows[event["tid"]], event["ts"] / 1000, event["dur"] / 1000
        if event["cat"] == "task":
            colour = SHADES[event["args"]["task"] % len(SHADES)]
            axes.broken_barh([(start, length)], (row - 0.35, 0.7), facecolor=colour, edgecolor="white", linewidth=0.4)
            if length > whole / 20:
                text = f"{event['name'].rpartition('.')[2]} #{event['args']['task']}"
                axes.text(start + length / 2, row, text, ha="center", va="center", fontsize=7, color="white")
        elif event["name"] == "asleep":
            axes.broken_barh([(start, length)], (row - 0.1, 0.2), facecolor="#dddddd", zorder=0)
    for event in events:
        if event["name"] == "beat" and event["tid"] in rows:
            row = rows[event["tid"]]
            axes.plot([event["ts"] / 1000] * 2, [row + 0.35, row + 0.45], color="black", linewidth=0.8)
    for name, colour in (("promotion", "black"), ("join", "#999999")):
        ends = {event["id"]: event for event in events if event["ph"] == "f" and event["name"] == name}
        for event in events:
            if event["ph"] == "s" and event["id"] in ends:
                other = ends[event["id"]]
                there, here = [(each["ts"] / 1000, rows[each["tid"]]) for each in (other, event)]
                style = {"arrowstyle": "->", "color": colour, "linewidth": 0.7}
                axes.annotate("", xy=there, xytext=here, arrowprops=style)
    axes.set_yticks([rows[tid] for tid in rows], [names[tid] for tid in rows], fontsize=8)
    axes.set_xlabel("milliseconds", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.margins(x=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=60_000, help="numbers to sort")
    parser.add_argument("--tries", type=int, default=30, help="recordings of which the shortest is drawn")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "trace.png")
    parser.add_argument("--json", type=Path, help="keep the recording")
    options = parser.parse_args()
    timeline = record(options.size, options.tries)
    if options.json is not None:
        timeline.save(options.json)
    draw(timeline.events, options.out)
    print("\n".join(timeline.summary().lines()))


if __name__ == "__main__":
    main()
