//! Warnings that differ only in their numbers, as those of the points of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_scenario::answer::Warning;

/// Number of similar warnings that are shown one by one; of more, only the first is shown.
const SHOWN_MAX: usize = 3;

/// A warning to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownWarning<'a> {
    /// The warning.
    pub warning: &'a Warning,
    /// Number of similar ones that are not shown.
    pub similar: usize,
}

/// The warnings to show, in their order.
#[must_use]
pub fn shown_warnings<'a>(
    warnings: impl IntoIterator<Item = &'a Warning, IntoIter: Clone>,
) -> Vec<ShownWarning<'a>> {
    let warnings = warnings.into_iter();
    let mut counts = BTreeMap::new();
    for warning in warnings.clone() {
        *counts.entry(kind(warning)).or_insert(0) += 1;
    }
    let mut shown = BTreeSet::new();
    let mut out = Vec::new();
    for warning in warnings {
        let kind = kind(warning);
        let count = counts[&kind];
        if count <= SHOWN_MAX {
            out.push(ShownWarning { warning, similar: 0 });
        } else if shown.insert(kind) {
            out.push(ShownWarning { warning, similar: count - 1 });
        }
    }
    out
}

impl ShownWarning<'_> {
    /// A remark about the similar warnings, to be appended to the message; empty without any.
    #[must_use]
    pub fn remark(&self) -> String {
        if self.similar == 0 {
            return String::new();
        }
        format!(
            " ({} more warnings differ from this one in numbers only; `answer.json` lists them)",
            self.similar
        )
    }
}

/// The message without its numbers, and the subject.
fn kind(warning: &Warning) -> (&str, String) {
    let is_part_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',');
    (&warning.about, warning.message.replace(is_part_of_number, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(about: &str, numbers: &[&str]) -> Vec<Warning> {
        let warning = |number: &&str| Warning {
            about: about.to_owned(),
            message: format!("{number} % of the messages wait"),
        };
        numbers.iter().map(warning).collect()
    }

    #[test]
    fn of_many_similar_warnings_the_first_is_shown_with_the_number_of_the_others() {
        let mut all = warnings("flow.a", &["0.5", "7", "12.25", "100.0"]);
        all.extend(warnings("flow.b", &["1", "2", "3"]));
        let shown = shown_warnings(&all);
        let expected = [(&all[0], 3), (&all[4], 0), (&all[5], 0), (&all[6], 0)];
        let found: Vec<_> = shown.iter().map(|one| (one.warning, one.similar)).collect();
        assert_eq!(found, expected);
        assert!(shown[0].remark().contains("3 more warnings"), "{}", shown[0].remark());
        assert_eq!(shown[1].remark(), "");
    }
}
