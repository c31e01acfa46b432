"""An SVG picture of the net, from its places, transitions and arcs. This module defines only their positions."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

from snakes.nets import Flush, Place

from .hierarchy import Hierarchy
from .net import Net
from .timed import Ahead


class Point(NamedTuple):
    """A position in the picture."""

    x: float
    y: float


WIDTH, HEIGHT = 1920, 800
TITLES = {"standard": "Standard TCP", "medx": "TCP-MEDX"}
PAGES = (
    ("Data generation (figure 2)", 14, 50, 400, 640),
    ("Sender (figure 3)", 430, 50, 570, 730),
    ("Channel (figure 1)", 1016, 50, 890, 470),
    ("Receiver", 1016, 536, 890, 244),
)
PLACES = {
    "clock": Point(214, 620),
    "with traffic type": Point(214, 350),
    "to send": Point(560, 110),
    "sender": Point(640, 380),
    "timer": Point(900, 380),
    "propagation buffer": Point(770, 720),
    "segments": Point(1085, 140),
    "lost in error": Point(1270, 290),
    "arrive": Point(1455, 140),
    "lost in queue": Point(1630, 290),
    "R_buffer": Point(1820, 140),
    "server": Point(1600, 390),
    "after router": Point(1820, 470),
    "receiver": Point(1820, 730),
    "delivered": Point(1500, 730),
    "acks": Point(1530, 610),
    "acks returned": Point(1085, 610),
}
MOVES = {
    "Gen. tokens with traffic type": Point(214, 490),
    "Ordinary": Point(110, 220),
    "Congested": Point(318, 245),
    "Send new": Point(620, 205),
    "Retransmit": Point(900, 255),
    "Receive ack": Point(900, 570),
    "Timeout": Point(640, 570),
    "Transmit packet": Point(1270, 140),
    "Drop tail": Point(1630, 140),
    "Serve": Point(1820, 330),
    "Receive packet": Point(1820, 610),
    "Transmit ack": Point(1330, 610),
}
STYLE = """
text { font: 12px sans-serif; fill: #1c2530 }
.page { fill: #f5f7fa; stroke: #c3ccd6; rx: 8px }
.page-name { font-size: 13px; font-weight: bold; fill: #5b6775 }
.place { fill: #ffffff; stroke: #2a6fb0; stroke-width: 1.6 }
.move { fill: #fff3dc; stroke: #b4761c; stroke-width: 1.6 }
.arc { fill: none; stroke: #5b6775; stroke-width: 1.1 }
.ahead { stroke-dasharray: 5 3 }
.label, .halo { font: 10.5px monospace }
.halo { stroke: #f5f7fa; stroke-width: 4px; stroke-linejoin: round }
.guard { font: italic 10.5px monospace; fill: #8a5a12 }
.head { fill: #5b6775 }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d }
  text { fill: #dfe6ee }
  .page { fill: #1c222a; stroke: #38424e }
  .page-name { fill: #9aa7b5 }
  .place { fill: #14181d; stroke: #6aaae4 }
  .move { fill: #3a2e17; stroke: #d8a24e }
  .arc { stroke: #9aa7b5 }
  .head { fill: #9aa7b5 }
  .halo { stroke: #1c222a }
  .guard { fill: #d8a24e }
}
"""


def picture(net: Net) -> str:
    """The net as SVG, with each place, transition and arc. A place or transition without a position is an error."""
    petri = net.petri
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        f"<title>{TITLES[petri.name]} as a coloured Petri net</title>",
        f"<style>{STYLE}</style>",
        f'<text x="18" y="30" style="font-size: 18px; font-weight: bold">{TITLES[petri.name]}</text>',
        '<text x="200" y="30" class="page-name">ellipse: place · box: transition, guard below · dashed: token taken '
        "ahead of its time · *: any number of tokens</text>",
    ]
    for name, x, y, width, height in PAGES:
        drawn.append(f'<rect class="page" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        drawn.append(f'<text class="page-name" x="{x + 12}" y="{y + 22}">{escape(name)}</text>')
    arcs: list[str] = []
    labels: list[str] = []
    for move in petri.transition():
        at = MOVES[move.name]
        inputs = {place.name: label for place, label in move.input()}
        outputs = {place.name: label for place, label in move.output()}
        for place, label in inputs.items():
            bend = 16.0 if place in outputs else 0.0
            line, text = _arc(PLACES[place], at, str(label), bend, to_move=True, ahead=isinstance(label, Ahead))
            arcs.append(line)
            labels.append(text)
        for place, label in outputs.items():
            bend = 16.0 if place in inputs else 0.0
            text = f"*{_expression(label)}" if isinstance(label, Flush) else str(label)
            line, text = _arc(at, PLACES[place], text, bend, to_move=False, ahead=False)
            arcs.append(line)
            labels.append(text)
    drawn += arcs
    for place in petri.place():
        drawn += _place(place)
    for move in petri.transition():
        drawn += _move(move.name, str(move.guard))
    return "\n".join([*drawn, *labels, "</svg>"]) + "\n"


def _expression(label: Flush) -> str:
    """The inscription of a flush arc, which SNAKES writes as `(f(x))!`."""
    return str(label).removesuffix("!").removeprefix("(").removesuffix(")")


def _place(place: Place) -> list[str]:
    at = PLACES[place.name]
    marked = ", ".join(_short(token.value) for token in place.tokens.items())
    return [
        f'<ellipse class="place" cx="{at.x}" cy="{at.y}" rx="64" ry="26"/>',
        f'<text x="{at.x}" y="{at.y + (-1 if marked else 4)}" text-anchor="middle">{escape(place.name)}</text>',
        _text("label", at.x, at.y + 14, marked),
    ]


def _move(name: str, guard: str) -> list[str]:
    at = MOVES[name]
    half = 4.0 * len(name) * 0.85 + 8
    drawn = [
        f'<rect class="move" x="{at.x - half:g}" y="{at.y - 17}" width="{2 * half:g}" height="34" rx="3"/>',
        f'<text x="{at.x}" y="{at.y + 4}" text-anchor="middle">{escape(name)}</text>',
    ]
    if guard != "True":
        drawn += [_text("halo", at.x, at.y + 31, f"[{guard}]"), _text("guard", at.x, at.y + 31, f"[{guard}]")]
    return drawn


def _short(value: object) -> str:
    """A short text for the first colour of a place."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "start"
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _arc(start: Point, end: Point, text: str, bend: float, *, to_move: bool, ahead: bool) -> tuple[str, str]:
    """An arrow with its inscription, bent if there is an arc in the opposite direction."""
    dx, dy = end.x - start.x, end.y - start.y
    length = math.hypot(dx, dy)
    middle = Point((start.x + end.x) / 2 - dy / length * bend, (start.y + end.y) / 2 + dx / length * bend)
    control = Point(2 * middle.x - (start.x + end.x) / 2, 2 * middle.y - (start.y + end.y) / 2)
    head = _edge(end, control, is_move=to_move)
    tail = _edge(start, control, is_move=not to_move)
    kind = "arc ahead" if ahead else "arc"
    tip = f"{head.x:.1f} {head.y:.1f}"
    line = f'<path class="{kind}" d="M{tail.x:.1f} {tail.y:.1f}Q{control.x:.1f} {control.y:.1f} {tip}"/>'
    angle = math.degrees(math.atan2(head.y - control.y, head.x - control.x))
    line += f'<path class="head" d="M0 0L-9 -3.6L-9 3.6Z" transform="translate({tip}) rotate({angle:.1f})"/>'
    # Labels of input arcs are placed close to the transition, those of output arcs close to the place: no overlaps.
    share = 0.72 if to_move else 0.6
    x = _on_curve(tail.x, control.x, head.x, share)
    y = _on_curve(tail.y, control.y, head.y, share)
    if abs(dx) < 200 and abs(dy) < 1:
        # A short horizontal arc has no space for its label on the line.
        x, y = (tail.x + head.x) / 2, y - (14 if bend == 0 else 4) * (1 if to_move else -1)
    return line, _text("halo", x, y + 3, text) + _text("label", x, y + 3, text)


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'


def _on_curve(a: float, b: float, c: float, t: float) -> float:
    return (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t * t * c


def _edge(centre: Point, towards: Point, *, is_move: bool) -> Point:
    """The intersection of a line from `towards` with the border of a box or an ellipse."""
    dx, dy = towards.x - centre.x, towards.y - centre.y
    if is_move:
        half = next(4.0 * len(name) * 0.85 + 8 for name, at in MOVES.items() if at == centre)
        reach = min(half / abs(dx) if dx else math.inf, 17 / abs(dy) if dy else math.inf)
    else:
        reach = 1 / math.hypot(dx / 64, dy / 26)
    return Point(centre.x + dx * reach, centre.y + dy * reach)


OVERVIEW_PAGES = {
    "Data generation": Point(170, 120),
    "Sender": Point(550, 120),
    "Channel": Point(930, 120),
    "Receiver": Point(930, 330),
}
OVERVIEW_SOCKETS = {
    "to send": Point(360, 120),
    "segments": Point(740, 120),
    "after router": Point(1090, 225),
    "acks": Point(770, 225),
    "acks returned": Point(550, 225),
}


def overview(hierarchy: Hierarchy) -> str:
    """The top page as SVG: substitution transitions with double borders, and their sockets."""
    drawn = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 400" width="1200" height="400">',
        "<title>Top page of the net, with substitution transitions</title>",
        f"<style>{STYLE}</style>",
        '<text x="18" y="30" style="font-size: 18px; font-weight: bold">Top page</text>',
        '<text x="130" y="30" class="page-name">ellipse: socket · double box: substitution transition, with the '
        "number of places and transitions of its page</text>",
    ]
    for page in hierarchy.pages:
        at = OVERVIEW_PAGES[page.name]
        for place in sorted(page.ports):
            socket = OVERVIEW_SOCKETS[place]
            if place in page.inputs:
                drawn.append(_straight(socket, at, (64, 26), (86, 30)))
            if place in page.outputs:
                drawn.append(_straight(at, socket, (86, 30), (64, 26)))
    for place, at in OVERVIEW_SOCKETS.items():
        drawn.append(f'<ellipse class="place" cx="{at.x}" cy="{at.y}" rx="64" ry="26"/>')
        drawn.append(f'<text x="{at.x}" y="{at.y + 4}" text-anchor="middle">{escape(place)}</text>')
    for page in hierarchy.pages:
        at = OVERVIEW_PAGES[page.name]
        for border in (0, 4):
            half, height = 82 - border, 28 - border
            drawn.append(
                f'<rect class="move" x="{at.x - half}" y="{at.y - height}" width="{2 * half}" height="{2 * height}"/>'
            )
        places = len(page.ports | page.internal)
        drawn.append(f'<text x="{at.x}" y="{at.y - 2}" text-anchor="middle">{escape(page.name)}</text>')
        drawn.append(_text("label", at.x, at.y + 14, f"{places} places, {len(page.moves)} transitions"))
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _straight(start: Point, end: Point, start_half: tuple[int, int], end_half: tuple[int, int]) -> str:
    """An arrow between two shapes with these half widths and heights."""
    dx, dy = end.x - start.x, end.y - start.y

    def border(half: tuple[int, int]) -> float:
        return min(half[0] / abs(dx) if dx else math.inf, half[1] / abs(dy) if dy else math.inf)

    tail = Point(start.x + dx * border(start_half), start.y + dy * border(start_half))
    head = Point(end.x - dx * border(end_half), end.y - dy * border(end_half))
    angle = math.degrees(math.atan2(dy, dx))
    tip = f"{head.x:.1f} {head.y:.1f}"
    line = f'<path class="arc" d="M{tail.x:.1f} {tail.y:.1f}L{tip}"/>'
    return line + f'<path class="head" d="M0 0L-9 -3.6L-9 3.6Z" transform="translate({tip}) rotate({angle:.1f})"/>'
