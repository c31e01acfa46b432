//! Colours, markers and dashes, and the style sheet that all charts share.

/// Indices of the series colours that represent reasons in a region chart; colour 0 represents
/// values.
pub(super) const REASONS: [usize; 6] = [1, 3, 4, 6, 7, 2];

/// Maximum number of distinguishable series.
pub(super) const SERIES_MAX: usize = 8;

/// Colours on white, based on the colour-blind-safe palette of Okabe and Ito, without yellow, which
/// is not visible on white, and with a darker orange. The style sheet defines the colours for dark
/// pages; these are attributes for programs without style sheet support.
pub(super) const COLOURS: [&str; SERIES_MAX] =
    ["#0072b2", "#d55e00", "#00815f", "#b3568f", "#a87000", "#3a9bdc", "#5d3a9b", "#4d4d4d"];

/// Text and axes, weaker text, grid and background, for the same programs.
pub(super) const INK: &str = "#1f2328";
pub(super) const WEAK: &str = "#59636e";
pub(super) const GRID: &str = "#e4e7eb";
pub(super) const GROUND: &str = "#ffffff";

/// Dashes by series; the first is solid.
pub(super) const DASHES: [&str; SERIES_MAX] =
    ["", "7 3", "2 2.5", "9 3 2 3", "5 2", "12 4", "1.5 2", "8 2 2 2 2 2"];

/// Style sheet of all charts: included in standalone charts, and once in pages with inline charts.
pub const STYLE: &str = "\
.gh-chart{--gh-bg:#ffffff;--gh-ink:#1f2328;--gh-weak:#59636e;--gh-grid:#e4e7eb;\
--gh-s0:#0072b2;--gh-s1:#d55e00;--gh-s2:#00815f;--gh-s3:#b3568f;\
--gh-s4:#a87000;--gh-s5:#3a9bdc;--gh-s6:#5d3a9b;--gh-s7:#4d4d4d}
@media screen and (prefers-color-scheme:dark){\
.gh-chart{--gh-bg:#0f1318;--gh-ink:#e6edf3;--gh-weak:#9aa7b4;--gh-grid:#29313a;\
--gh-s0:#4ea8e6;--gh-s1:#ff8a4c;--gh-s2:#3ccb9e;--gh-s3:#e79cc8;\
--gh-s4:#f0b93a;--gh-s5:#9bd8ff;--gh-s6:#b79cf0;--gh-s7:#c9d1d9}}
.gh-bg{fill:var(--gh-bg)}
.gh-ink{color:var(--gh-ink)}
.gh-weak{color:var(--gh-weak)}
.gh-grid{color:var(--gh-grid)}
.gh-s0{color:var(--gh-s0)}.gh-s1{color:var(--gh-s1)}.gh-s2{color:var(--gh-s2)}\
.gh-s3{color:var(--gh-s3)}.gh-s4{color:var(--gh-s4)}.gh-s5{color:var(--gh-s5)}\
.gh-s6{color:var(--gh-s6)}.gh-s7{color:var(--gh-s7)}
.gh-halo{stroke:var(--gh-bg);paint-order:stroke}
.gh-hollow{fill:var(--gh-bg)}
.gh-hatch{stroke:var(--gh-bg)}
@media print{.gh-chart{break-inside:avoid;print-color-adjust:exact}}";

/// Outline of the marker of a series, around the origin.
pub(super) fn marker(series: usize) -> &'static str {
    match series % SERIES_MAX {
        0 => "M-3.4 0A3.4 3.4 0 1 1 3.4 0A3.4 3.4 0 1 1 -3.4 0Z",
        1 => "M-3.1 -3.1H3.1V3.1H-3.1Z",
        2 => "M0 -4.2L4 2.9H-4Z",
        3 => "M0 -4.4L4.4 0L0 4.4L-4.4 0Z",
        4 => "M0 4.2L4 -2.9H-4Z",
        5 => "M-1.3 -4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z",
        6 => "M0 -4.4L4.2 -1.4L2.6 3.6H-2.6L-4.2 -1.4Z",
        _ => "M0 -4.6L1.2 -1.4L4.5 -1.4L1.9 0.7L2.8 3.9L0 2L-2.8 3.9L-1.9 0.7L-4.5 -1.4L-1.2 -1.4Z",
    }
}
