"""Charts as inline SVG that take their colours from the page, so that they follow its light or dark scheme.

Matplotlib draws; each colour it is given stands for a role, which becomes a CSS variable of the page. Texts stay texts. A chart is
drawn twice, for wide and for narrow screens, and the page shows the one that fits: a single drawing scaled down to a telephone could
not be read. Equal input gives equal bytes.
"""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from markupsafe import Markup

from agent_gym.errors import MissingExtra
from agent_gym.report.figures import percent, visible, whole_percent
from agent_gym.report.kit import stylesheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Chart", "Dot", "Point", "Row", "Series", "Tone", "dot_chart", "learning_curves", "standalone"]

Tone = Literal["blue", "orange", "green", "purple", "grey"]

_ROLES = {"ink": "#000001", "muted": "#000002", "line": "#000003", "paper": "#000004"}
_TONES: dict[Tone, str] = {"blue": "#000011", "orange": "#000012", "green": "#000013", "grey": "#000014", "purple": "#000015"}
_MARKERS: dict[Tone, str] = {"blue": "o", "orange": "s", "green": "D", "grey": "^", "purple": "v"}
_VARIABLES = {colour: f"var(--{name})" for name, colour in [*_ROLES.items(), *_TONES.items()]}

_WIDE, _NARROW = 880, 350
_LONGEST = 32
_LABELLED = 4
"""Curves at most whose last rates are written beside them; of more, the figures would only hide each other."""
_MARGIN = 10
_LEGEND_LINE = 20
_DASHES: dict[str, Any] = {"solid": "solid", "dashed": (0, (5, 2.5)), "dotted": (0, (1, 2))}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True)
class Point:
    """One measurement on a learning curve.

    Attributes:
        steps: Environment steps so far.
        success: Success rate, in [0, 1].
        low: Lower end of its 95 % interval, drawn as a band, if there is one.
        high: Upper end of it.
    """

    steps: int
    success: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A named curve.

    Attributes:
        name: For the legend.
        points: By growing steps.
        tone: Its colour and marker.
        dash: How its line is drawn: ``solid``, ``dashed`` or ``dotted``; by default as the tone has it.
        marker: One of matplotlib's markers in place of the tone's; empty for none.
    """

    name: str
    points: Sequence[Point]
    tone: Tone = "blue"
    dash: str | None = None
    marker: str | None = None


@dataclass(frozen=True)
class Dot:
    """One rate in a dot chart.

    Attributes:
        name: For the legend; equal in every row.
        rate: In [0, 1], or None where it is not known.
        ends: Its interval, if known.
        tone: Its colour and marker.
    """

    name: str
    rate: float | None
    ends: Sequence[float] | None
    tone: Tone


@dataclass(frozen=True)
class Row:
    """One line of a dot chart: its name and its rates."""

    name: str
    dots: Sequence[Dot]


@dataclass(frozen=True)
class Chart:
    """A chart, drawn twice.

    Attributes:
        wide: SVG for wide screens and paper.
        narrow: SVG for narrow screens.
    """

    wide: Markup
    narrow: Markup


def learning_curves(series: Sequence[Series], *, title: str) -> Chart:
    """Success rate over environment steps.

    Args:
        series: The curves; one without points is left out.
        title: What the chart shows, for those who cannot see it.

    Raises:
        MissingExtra: Matplotlib is not installed.
    """
    curves = [curve for curve in series if curve.points]
    ends = "; ".join(f"{curve.name} ends at {whole_percent(curve.points[-1].success)}" for curve in curves)

    def draw(width: int) -> Markup:
        columns, lines = (4, 1) if width == _WIDE else (1, 2)  # of the legend; more lines of it than these make the drawing higher
        height = (380 if width == _WIDE else 330) + _LEGEND_LINE * max(0, math.ceil(len(curves) / columns) - lines)
        with _figure(width, height, title=f"{title}: {ends}.") as (figure, axes):
            for curve in curves:
                _draw_curve(axes, curve)
            if len(curves) <= _LABELLED:
                _write_ends(axes, curves)
            axes.set_ylim(-0.03, 1.04)
            axes.set_xlabel("environment steps")
            axes.set_ylabel("success rate")
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
            axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
            axes.locator_params(axis="x", nbins=8 if width == _WIDE else 4)
            axes.grid(axis="y")
            _legend(figure, axes, columns=columns)
            return _svg(figure)

    return Chart(draw(_WIDE), draw(_NARROW))


def standalone(drawing: str) -> str:
    """A drawing of a chart as a file of its own, with the kit's colours for light and dark schemes and its paper.

    Args:
        drawing: One of a `Chart`'s.
    """
    drawing = str(drawing)  # no text of anybody's is put into it, so nothing is to be escaped
    light, dark = re.findall(r":root \{.*?\}", stylesheet(), re.DOTALL)[:2]
    style = f"<style>{light} @media (prefers-color-scheme: dark) {{ {dark} }} text {{ font-family: var(--sans); }}</style>"
    width, height = (float(side) for side in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)[0])
    wide, high = (f"{side + 2 * _MARGIN:g}" for side in (width, height))
    opened = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
    paper = '<rect width="100%" height="100%" style="fill: var(--paper)"></rect>'
    inside = drawing.replace("<svg ", f'<svg x="{_MARGIN}" y="{_MARGIN}" width="{width:g}" height="{height:g}" ', 1)
    return f"{opened}{style}{paper}{inside}</svg>\n"


def dot_chart(rows: Sequence[Row], *, title: str) -> Chart:
    """Rates with their intervals, side by side for each row; the first row on top.

    Args:
        rows: At least one.
        title: What the chart shows, for those who cannot see it.

    Raises:
        MissingExtra: Matplotlib is not installed.
    """
    told = "; ".join(f"{row.name}: " + ", ".join(f"{dot.name} {percent(dot.rate)}" for dot in row.dots) for row in rows)
    lines = max((len(row.dots) for row in rows), default=1)

    def draw(width: int) -> Markup:
        height = 96 + len(rows) * (13 * lines + 18) + (0 if width == _WIDE else 18 * (lines // 2))
        with _figure(width, height, title=f"{title}: {told}.") as (figure, axes):
            for place, row in enumerate(rows):
                if place:
                    axes.axhline(place - 0.5, color=_ROLES["line"], linewidth=1)
                for index, dot in enumerate(row.dots):
                    _draw_dot(axes, dot, place + 0.72 * ((index + 0.5) / lines - 0.5))
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.set_xlim(-0.02, 1.02)
            axes.set_yticks(range(len(rows)), [_label(row.name if width == _WIDE else row.name.replace("/", "/\n", 1)) for row in rows])
            axes.tick_params(axis="y", labelcolor=_ROLES["ink"])
            axes.set_xlabel("success rate, with 95 % interval")
            axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
            axes.locator_params(axis="x", nbins=10 if width == _WIDE else 4)
            axes.grid(axis="x")
            _legend(figure, axes, columns=lines if width == _WIDE else 2)
            return _svg(figure)

    return Chart(draw(_WIDE), draw(_NARROW))


def _draw_curve(axes: "Axes", curve: Series) -> None:
    colour, steps = _TONES[curve.tone], [point.steps for point in curve.points]
    banded = [(point.steps, point.low, point.high) for point in curve.points if point.low is not None and point.high is not None]
    if banded:
        at, low, high = zip(*banded, strict=True)
        if len(banded) > 1:
            axes.fill_between(at, low, high, color=colour, alpha=0.16, linewidth=0)
        else:
            axes.vlines(at, low, high, color=colour, alpha=0.5, linewidth=2)
    rates = [point.success for point in curve.points]
    dash = _DASHES[curve.dash or ("solid" if curve.tone == "blue" else "dashed")]
    marker = _MARKERS[curve.tone] if curve.marker is None else curve.marker
    axes.plot(
        steps,
        rates,
        color=colour,
        linestyle=dash,
        marker=marker,
        markersize=4.5 if curve.marker is None else 6.5,
        label=_label(curve.name),
        clip_on=False,
    )


def _write_ends(axes: "Axes", curves: Sequence[Series]) -> None:
    """Writes each curve's last rate beside its end, moved apart where two would overlap."""
    ends = sorted((curve.points[-1].success, curve.points[-1].steps, curve.tone) for curve in curves)
    heights = [rate for rate, _, _ in ends]
    for below, above in pairwise(range(len(heights))):
        heights[above] = max(heights[above], heights[below] + 0.07)
    for (rate, steps, tone), height in zip(ends, heights, strict=True):
        axes.annotate(
            whole_percent(rate).replace("less than ", "< ").replace("more than ", "> "),
            (steps, height),
            xytext=(9, 0),
            textcoords="offset points",
            color=_TONES[tone],
            weight="bold",
            va="center",
            annotation_clip=False,
        )


def _draw_dot(axes: "Axes", dot: Dot, height: float) -> None:
    if dot.rate is None:
        return
    colour = _TONES[dot.tone]
    if dot.ends is not None:
        axes.plot(dot.ends, [height, height], color=colour, linewidth=2.5, alpha=0.55, solid_capstyle="round", clip_on=False)
    axes.plot(
        [dot.rate],
        [height],
        color=colour,
        marker=_MARKERS[dot.tone],
        markersize=6.5,
        linestyle="none",
        label=_label(dot.name),
        clip_on=False,
    )


def _label(name: str) -> str:
    """A name that cannot break the drawing: short, and without characters that fonts and XML have no place for."""
    return visible(name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…")


def _legend(figure: "Figure", axes: "Axes", columns: int) -> None:
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if handles:
        figure.legend(handles.values(), handles, loc="outside upper left", ncols=columns, frameon=False, borderaxespad=0, columnspacing=1.6)


@contextmanager
def _figure(width: int, height: int, *, title: str) -> Iterator[tuple["Figure", "Axes"]]:
    """An empty figure of so many CSS pixels, in the kit's style whatever the user's own settings are."""
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "train") from error
    title = visible(title)
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": f"{title} {width}",  # ids differ between charts, and are the same in every run
        "text.parse_math": False,
        "text.color": _ROLES["ink"],
        "font.size": 13,
        "axes.edgecolor": _ROLES["muted"],
        "axes.labelcolor": _ROLES["muted"],
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "grid.color": _ROLES["line"],
        "lines.linewidth": 2,
        "xtick.color": _ROLES["muted"],
        "ytick.color": _ROLES["muted"],
        "ytick.major.size": 0,
    }
    with matplotlib.style.context(["default", style]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the page's fonts draw the text, not matplotlib's
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained", facecolor="none")
        figure.set_label(title)
        axes = figure.add_subplot(facecolor="none")
        yield figure, axes


def _svg(figure: "Figure") -> Markup:
    """Turns a figure into SVG for the inside of a page: coloured by its variables, without ids, styles and addresses of its own."""
    drawn = BytesIO()
    figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    root = ElementTree.fromstring(drawn.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}style", f"{_SVG}metadata"):
                parent.remove(child)
    used = set(re.findall(r"#(\w+)", " ".join(value for node in root.iter() for value in node.attrib.values())))
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        if node.get("id") not in used:
            node.attrib.pop("id", None)
        if target := node.attrib.pop(_LINK, None):
            node.set("href", target)
        if style := node.get("style"):
            style = re.sub(r"font-family: [^;]*;? ?", "", style)
            node.set("style", re.sub(r"#[0-9a-f]{6}", lambda match: _VARIABLES.get(match[0], match[0]), style))
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": str(figure.get_label())}
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))
