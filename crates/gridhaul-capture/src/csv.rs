//! Cells of tables in CSV.

use std::borrow::Cow;

/// A cell in the form of RFC 4180: quoted if it contains a separator or a quotation mark.
pub(crate) fn csv_cell(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_and_quotation_marks_are_quoted() {
        for (text, cell) in [
            ("", ""),
            ("two words; 1.5", "two words; 1.5"),
            ("1,5", "\"1,5\""),
            ("two\nlines", "\"two\nlines\""),
            ("a \"b\"", "\"a \"\"b\"\"\""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }
}
