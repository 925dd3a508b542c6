"""The look of every picture: few colours, no boxes, numbers on the lines they belong to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

INK_COLOUR = "#1f2933"
MUTED_COLOUR = "#9aa5b1"
GRID_COLOUR = "#e4e7eb"
ACCENT_COLOUR = "#d9480f"
SECOND_COLOUR = "#1971c2"
BETTER_COLOUR, WORSE_COLOUR = "#2b8a3e", ACCENT_COLOUR
"""Colours of what is ahead of a baseline and behind it, those of pages."""


def create_figure(width: float, height: float) -> Any:
    """Return an empty figure that needs no display; size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Any, title: str) -> None:
    """Give axes the common look."""
    axes.set_title(title, loc="left", color=INK_COLOUR, fontsize=11, weight="bold")
    axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK_COLOUR)


def draw_angle_matrix(
    names: Sequence[str], below: tuple[str, np.ndarray], above: tuple[str, np.ndarray], title: str, path: Path
) -> None:
    """Draw a square of angles in degrees, one kind below and another above the diagonal.

    Args:
        names: Labels of the rows and columns, N of them.
        below: Legend of the angles below the diagonal, and the angles, shape ``(N, N)``.
        above: Legend of the angles above the diagonal, and the angles, shape ``(N, N)``.
        title: Title of the picture.
        path: File that the picture is written to.

    """
    degrees = np.tril(below[1], -1) + np.triu(above[1], 1)
    figure = create_figure(2.4 + 0.95 * len(names), 1.8 + 0.7 * len(names))
    axes = figure.subplots()
    axes.imshow(np.ma.masked_where(np.eye(len(names)) > 0, degrees), cmap="YlOrBr", vmin=0, vmax=90, aspect="auto")
    for row, column in np.ndindex(degrees.shape):
        if row != column:
            value = degrees[row, column]
            style = {"ha": "center", "va": "center", "fontsize": 9, "color": "white" if value > 55 else INK_COLOUR}
            axes.text(column, row, f"{value:.1f}°", **style)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    style_axes(axes, title)
    axes.set_xlabel(f"below the diagonal: {below[0]}\nabove: {above[0]}", color=MUTED_COLOUR, fontsize=8)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.savefig(path, dpi=150)


def draw_distributions(
    panels: Sequence[tuple[str, dict[str, np.ndarray]]], label: str, path: Path, bins: int = 50
) -> None:
    """Draw one panel per place, with the distribution of each kind of token in it.

    Args:
        panels: Title of each panel with the values of its ``execution`` and ``planning`` tokens; all panels share their
            axes.
        label: Axis label of the values.
        path: File that the picture is written to.
        bins: Number of bins, from the smallest value to the 0.999 quantile of all; the last bin holds the rest.

    """
    all_values = np.concatenate([values for _, kinds in panels for values in kinds.values()])
    edges = np.linspace(min(all_values.min(), 0.0), max(np.quantile(all_values, 0.999), 1e-6), bins + 1)
    figure = create_figure(4.4 * len(panels) + 0.6, 3.8)
    row = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, kinds) in zip(row, panels, strict=True):
        for (kind, values), colour in zip(kinds.items(), (SECOND_COLOUR, ACCENT_COLOUR), strict=True):
            if not len(values):
                continue
            share, _ = np.histogram(values.clip(max=edges[-1]), edges, weights=np.full(len(values), 1 / len(values)))
            caption = f"{kind}: {len(values):,} tokens, mean {values.mean():.3f}, variance {values.var():.3g}"
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.25)
            axes.stairs(share, edges, color=colour, linewidth=1.0, label=caption)
        style_axes(axes, title)
        axes.set(yscale="log", xlabel=label, ylim=(None, 6))
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    row[0].set_ylabel("share of the kind's tokens")
    figure.savefig(path, dpi=150)
