//! SVG primitives: coordinates with fixed decimals, lines, text and its width.

use svg::node::element::{Group, Line, Path, Text, Title};

use super::style::{COLOURS, SERIES_MAX};

/// Font size of labels.
pub(super) const FONT: f64 = 12.0;

/// Formats a coordinate with two decimals, which exceeds the resolution of screens and is
/// deterministic.
pub(super) fn px(value: f64) -> String {
    let mut text = String::new();
    push_px(&mut text, value);
    text
}

/// Coordinates below this limit are formatted by multiplication.
const HUNDREDTHS_MAX: f64 = 1e8;

/// Appends a coordinate as [`px`] formats it.
fn push_px(text: &mut String, value: f64) {
    let hundredths = value.abs() * 100.0;
    let whole = hundredths as u32;
    let part = hundredths - f64::from(whole);
    // The product has an error of 1e-8 at most: near one half, only all its digits decide.
    let is_certain = hundredths < HUNDREDTHS_MAX && (part - 0.5).abs() > 1e-6;
    if !is_certain {
        let exact = format!("{value:.2}");
        let exact = exact.trim_end_matches('0').trim_end_matches('.');
        *text += if exact == "-0" { "0" } else { exact };
        return;
    }
    let rounded = whole + u32::from(part > 0.5);
    if value < 0.0 && rounded > 0 {
        text.push('-');
    }
    let digit = |divisor: u32| char::from(b'0' + (rounded / divisor % 10) as u8);
    let mut divisor = 100;
    while rounded / divisor >= 10 {
        divisor *= 10;
    }
    while divisor >= 100 {
        text.push(digit(divisor));
        divisor /= 10;
    }
    if !rounded.is_multiple_of(100) {
        text.push('.');
        text.push(digit(10));
        if !rounded.is_multiple_of(10) {
            text.push(digit(1));
        }
    }
}

/// A group in the colour of a role (`ink`, `weak`, `grid`).
pub(super) fn role(role: &str, fallback: &str) -> Group {
    Group::new().set("class", format!("gh-{role}")).set("color", fallback)
}

/// A group in the colour of a series.
pub(super) fn coloured(series: usize) -> Group {
    let index = series % SERIES_MAX;
    role(&format!("s{index}"), COLOURS[index])
}

/// A line of text; `anchor` is `start`, `middle` or `end`.
pub(super) fn text(x: f64, y: f64, anchor: &str, content: &str) -> Text {
    Text::new(clean(content)).set("x", px(x)).set("y", px(y)).set("text-anchor", anchor)
}

/// A tooltip.
pub(super) fn tooltip(content: &str) -> Title {
    Title::new(clean(content))
}

/// Adds a label, of which `shown` is drawn, to a group. If that is only a part of it, a tooltip has
/// the full text.
pub(super) fn add_label(group: Group, label: Text, shown: &str, full: &str) -> Group {
    if shown == full {
        return group.add(label);
    }
    group.add(Group::new().add(tooltip(full)).add(label))
}

/// A straight line in the current colour.
pub(super) fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new().set("x1", px(x1)).set("y1", px(y1)).set("x2", px(x2)).set("y2", px(y2))
}

/// An open line through points in the current colour.
pub(super) fn open_path(data: String) -> Path {
    Path::new().set("d", data).set("fill", "none").set("stroke", "currentColor")
}

/// Adds a point to the data of a path.
pub(super) fn path_to(data: &mut String, command: char, x: f64, y: f64) {
    data.push(command);
    push_px(data, x);
    data.push(' ');
    push_px(data, y);
}

/// Estimated width of a text in the sans-serif fonts of the charts, an upper bound.
pub(super) fn width(content: &str, size: f64) -> f64 {
    let ems: f64 = content.chars().map(em).sum();
    ems * size * 1.03
}

/// The text, truncated with an ellipsis if it is wider than `max`.
pub(super) fn shortened(content: &str, size: f64, max: f64) -> String {
    if width(content, size) <= max {
        return content.to_owned();
    }
    let mut out = String::new();
    let mut used = size;
    for c in content.chars() {
        used += em(c) * size * 1.03;
        if used > max {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out + "…"
}

/// The text wrapped to at most `lines` lines of width `max`, broken at spaces and after `.`, `-`,
/// `_`, `/`.
pub(super) fn wrapped(content: &str, size: f64, max: f64, lines: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    for piece in content.split_inclusive([' ', '.', '-', '_', '/']) {
        let full = out.len() == lines;
        let Some(last) = out.last_mut() else { break };
        let joined = format!("{last}{piece}");
        if full || last.is_empty() || width(joined.trim_end(), size) <= max {
            *last = joined;
        } else {
            out.push(piece.to_owned());
        }
    }
    out.iter().map(|line| shortened(line.trim(), size, max)).collect()
}

/// The text without characters that XML forbids.
pub(super) fn clean(content: &str) -> String {
    let allowed = |c: &char| !c.is_control() && !matches!(*c, '\u{fffe}' | '\u{ffff}');
    content
        .chars()
        .map(|c| if c.is_whitespace() { keep_space(c) } else { c })
        .filter(allowed)
        .collect()
}

fn keep_space(c: char) -> char {
    if matches!(c, '\u{202f}' | '\u{a0}') { c } else { ' ' }
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' => 0.23,
        '.' | ',' | ':' | ';' | '!' | 'I' | ' ' | '/' | 't' | 'f' | '[' | ']' => 0.285,
        '\u{202f}' => 0.2,
        '(' | ')' | '-' | 'r' | '"' | '`' => 0.335,
        'm' | 'M' | 'w' | '%' => 0.85,
        'W' | '@' => 0.97,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' | 'J' => 0.5,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.36,
        'A'..='Z' => 0.7,
        ' '..='~' => 0.56,
        '\u{80}'..='\u{2fff}' => 0.6,
        _ => 1.05,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A coordinate formatted with all its digits.
    fn exact(value: f64) -> String {
        let text = format!("{value:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text == "-0" { "0".into() } else { text.to_owned() }
    }

    #[test]
    fn coordinates_have_at_most_two_decimals() {
        let cases = [
            (0.0, "0"),
            (-0.004, "0"),
            (-0.006, "-0.01"),
            (12.0, "12"),
            (9.999, "10"),
            (99.996, "100"),
            (480.5, "480.5"),
            (480.05, "480.05"),
            (-1234.567, "-1234.57"),
            (1e7, "10000000"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(px(value), text);
        }
    }

    proptest! {
        #[test]
        fn coordinates_are_rounded_correctly(value in -2e6..2e6, sixteenths in -8000..8000_i32) {
            prop_assert_eq!(px(value), exact(value));
            // Numbers whose hundredths end in one half, and numbers next to them.
            let tie = f64::from(sixteenths) / 16.0;
            for near in [tie, tie.next_up(), tie.next_down()] {
                prop_assert_eq!(px(near), exact(near));
            }
            let half = (value.round() + 0.5) / 100.0;
            prop_assert_eq!(px(half), exact(half));
        }
    }
}
