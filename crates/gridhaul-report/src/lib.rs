//! Charts as SVG and self-contained HTML reports.
