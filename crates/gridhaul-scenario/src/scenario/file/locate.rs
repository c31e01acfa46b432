//! Locations of keys in the text of a scenario file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::scenario::error::SourceLocation;

/// A parsed text with the location of each key.
pub(super) struct Document<'t> {
    text: &'t str,
    root: DeValue<'t>,
}

/// The entry at a path.
struct Entry<'a, 't> {
    key: Option<Range<usize>>,
    value: &'a DeValue<'t>,
    value_span: Range<usize>,
}

impl<'t> Document<'t> {
    pub(super) fn new(text: &'t str, table: Spanned<DeTable<'t>>) -> Self {
        Self { text, root: DeValue::Table(table.into_inner()) }
    }

    /// The whole document, a table.
    pub(super) fn root(&self) -> &DeValue<'t> {
        &self.root
    }

    /// Location of a key such as `link.a.both.outage[0].length`, or of the closest parent key that
    /// the text contains (a default value has no location).
    pub(super) fn location(&self, path: &str) -> Option<SourceLocation> {
        let mut found = None;
        let mut value = &self.root;
        for step in steps(path) {
            let Some(next) = child(value, &step) else { break };
            value = next.value;
            found = Some(next);
        }
        let found = found?;
        // The value of a plain key is what is wrong; that of a table or list has many lines, of
        // which its key is the first.
        let plain = !matches!(found.value, DeValue::Table(_) | DeValue::Array(_));
        let span = match found.key {
            Some(key) if !plain => key,
            _ => found.value_span,
        };
        Some(self.location_of(span))
    }

    /// Location of a range of bytes of the text.
    pub(super) fn location_of(&self, span: Range<usize>) -> SourceLocation {
        SourceLocation::of(self.text, span)
    }

    /// Path of the innermost key whose name or value covers these bytes.
    pub(super) fn path_at(&self, span: &Range<usize>) -> String {
        let mut path = String::new();
        descend(
            &self.root,
            &|key, value| covers(key, span) || covers(&value.span(), span),
            &mut path,
        );
        path
    }

    /// Path of the innermost table at exactly these bytes; empty for the whole file.
    pub(super) fn table_at(&self, span: &Range<usize>) -> String {
        let mut path = String::new();
        let matches = |_: &Range<usize>, value: &Spanned<DeValue<'_>>| {
            value.get_ref().is_table() && value.span() == *span
        };
        descend(&self.root, &matches, &mut path);
        path
    }
}

/// Splits `link.a.both.outage[0]` into `link`, `a`, `both`, `outage`, `[0]`. A quoted step
/// (`vary."link.a"`) may contain dots.
pub(in crate::scenario) fn steps(path: &str) -> Vec<String> {
    let (mut steps, mut step, mut quoted) = (Vec::new(), String::new(), false);
    for character in path.chars() {
        match character {
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => {
                steps.push(std::mem::take(&mut step));
                if character == '[' {
                    step.push('[');
                }
            }
            _ => step.push(character),
        }
    }
    steps.push(step);
    steps
}

fn child<'a, 't>(value: &'a DeValue<'t>, step: &str) -> Option<Entry<'a, 't>> {
    match value {
        DeValue::Table(table) => {
            let (key, value) = table.iter().find(|(key, _)| key.get_ref() == step)?;
            let key = Some(key.span());
            Some(Entry { key, value: value.get_ref(), value_span: value.span() })
        }
        DeValue::Array(array) => {
            let index: usize = step.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            let value = array.get(index)?;
            Some(Entry { key: None, value: value.get_ref(), value_span: value.span() })
        }
        _ => None,
    }
}

/// Condition on the span of a key and its value.
type Condition<'a> = &'a dyn Fn(&Range<usize>, &Spanned<DeValue<'_>>) -> bool;

/// Extends `path` to the innermost key that meets a condition. True if there is one.
fn descend(value: &DeValue<'_>, condition: Condition<'_>, path: &mut String) -> bool {
    let length = path.len();
    let mut visit =
        |step: &dyn Fn(&mut String), key: &Range<usize>, value: &Spanned<DeValue<'_>>| {
            step(path);
            // Inner keys first: those around them meet most conditions as well.
            let found = descend(value.get_ref(), condition, path) || condition(key, value);
            if !found {
                path.truncate(length);
            }
            found
        };
    match value {
        DeValue::Table(table) => table
            .iter()
            .any(|(key, value)| visit(&|path| push_key(path, key.get_ref()), &key.span(), value)),
        DeValue::Array(array) => array.iter().enumerate().any(|(index, value)| {
            visit(&|path| path.push_str(&format!("[{index}]")), &value.span(), value)
        }),
        _ => false,
    }
}

/// Appends a key to a path, in quotes if it is not a bare key.
pub(super) fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) {
        path.push_str(key);
    } else {
        path.push_str(&format!("{key:?}"));
    }
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
