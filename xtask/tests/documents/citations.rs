//! Sections of RFCs that documents and comments cite, against the table `rfc-sections.txt`.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::{Finding, Page};

/// The sections of each RFC.
pub(crate) struct Table(BTreeMap<u32, BTreeSet<String>>);

/// A citation: the RFC, the sections, and where the text of the page has it.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    rfc: u32,
    sections: Vec<String>,
    offset: usize,
}

impl Table {
    pub(crate) fn read(text: &str) -> Self {
        let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.map(str::to_owned).collect()))
        });
        Self(rows.collect())
    }

    /// Citations of sections that do not exist.
    pub(crate) fn check(&self, page: &Page) -> Vec<Finding> {
        let (text, lines) = flowing(&page.text);
        let mut findings = Vec::new();
        for Citation { rfc, sections, offset } in citations(&text) {
            let line = lines.partition_point(|start| *start <= offset);
            for section in sections {
                if let Some(message) = self.fault(rfc, &section) {
                    findings.push(page.finding(line, message));
                }
            }
        }
        findings
    }

    /// The number of citations of a section.
    pub(crate) fn count(page: &Page) -> usize {
        citations(&flowing(&page.text).0).len()
    }

    pub(crate) fn fault(&self, rfc: u32, section: &str) -> Option<String> {
        let Some(sections) = self.0.get(&rfc) else {
            return Some(format!(
                "cites RFC {rfc}, section {section}, but rfc-sections.txt has no RFC {rfc}; add \
                 its sections"
            ));
        };
        let known: Vec<_> = sections.iter().map(String::as_str).collect();
        (!sections.contains(section)).then(|| {
            format!("RFC {rfc} has no section {section}; cite one of: {}", known.join(" "))
        })
    }
}

/// The cited sections of a text, each as `9293, 3.4`.
pub(crate) fn sections(text: &str) -> BTreeSet<String> {
    let found = citations(&flowing(text).0).into_iter();
    found
        .flat_map(|Citation { rfc, sections, .. }| {
            sections.into_iter().map(move |section| format!("{rfc}, {section}"))
        })
        .collect()
}

/// The text with comment marks and line ends replaced by single spaces, and the offset at which
/// each line begins.
fn flowing(text: &str) -> (String, Vec<usize>) {
    let mut flowing = String::new();
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(flowing.len());
        let line = line.trim();
        let marks = ["//!", "///", "//", "/*", "* ", "# "];
        let bare = marks.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        flowing.push_str(bare.trim());
        flowing.push(' ');
    }
    (flowing, starts)
}

fn citations(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (offset, _) in text.match_indices("RFC ") {
        let rest = &text[offset + 4..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(rfc) = rest[..digits].parse() else { continue };
        let mut sections = after(&rest[digits..]);
        sections.extend(before(&text[..offset]));
        if !sections.is_empty() {
            found.push(Citation { rfc, sections, offset });
        }
    }
    found
}

/// The sections of `, section 3.1`, `, sections 2.2 and 2.3`, ` (section 4)` or `, 5.4 to 5.6`.
fn after(rest: &str) -> Vec<String> {
    let words = [
        ", sections ",
        " sections ",
        ", section ",
        " section ",
        " (section ",
        ", appendix ",
        " appendix ",
    ];
    let word = words.iter().find(|word| rest.starts_with(**word));
    let mut rest = match word {
        Some(word) => &rest[word.len()..],
        None => match rest.strip_prefix(", ") {
            Some(rest) => rest,
            None => return Vec::new(),
        },
    };
    let mut sections: Vec<String> = Vec::new();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
        let section = rest[..end].trim_end_matches('.');
        // `RFC 5681, 3042 and 6298` lists RFCs; `, and 40 of headers` goes on with the sentence.
        let list = sections.is_empty()
            || section.contains('.')
            || word.is_some_and(|word| word.contains("sections"));
        if !is_section(section, word.is_some()) || !list {
            return sections;
        }
        sections.push(section.to_owned());
        rest = &rest[section.len()..];
        let Some(next) =
            [" and ", " to ", " or ", ", ", " & "].iter().find_map(|mark| rest.strip_prefix(mark))
        else {
            return sections;
        };
        rest = next;
    }
}

/// The section of `section 3.1 of RFC 5681`.
fn before(text: &str) -> Option<String> {
    let text = text.strip_suffix(" of ")?;
    let (rest, section) = text.rsplit_once(' ')?;
    (rest.to_lowercase().ends_with("section") && is_section(section, true))
        .then(|| section.to_owned())
}

/// Whether this is the number of a section: `3.8.6`, or after the word `appendix` a letter.
fn is_section(text: &str, letters: bool) -> bool {
    let mut parts = text.split('.');
    let first = parts.next().unwrap_or_default();
    let number =
        |part: &str| matches!(part.len(), 1..=2) && part.bytes().all(|byte| byte.is_ascii_digit());
    let letter = letters && first.len() == 1 && first.bytes().all(|byte| byte.is_ascii_uppercase());
    (number(first) || letter) && parts.all(number)
}

#[test]
fn citations_are_found_in_all_their_forms() {
    let cited = |text: &str| {
        let found = citations(&flowing(text).0);
        found
            .iter()
            .map(|found| format!("{} {}", found.rfc, found.sections.join(" ")))
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(cited("(RFC 9293, section 3.8.6)."), "9293 3.8.6");
    assert_eq!(cited("RFC 6298, 5.4 to 5.6; RFC 6675, section 5"), "6298 5.4 5.6; 6675 5");
    assert_eq!(
        cited("RFC 7323, sections 2.2 and 2.3, and RFC 7323, appendix A: 10 bytes"),
        "7323 2.2 2.3; 7323 A"
    );
    assert_eq!(cited("/// see RFC 7323, section\n/// 4.3."), "7323 4.3");
    assert_eq!(cited("section 3.1 of RFC 5681"), "5681 3.1");
    assert_eq!(
        cited("RFC 5681, 3042 and 6298; RFC 1122 section 4.2.2.6, and 40 of headers"),
        "1122 4.2.2.6"
    );
}

#[test]
fn a_section_that_does_not_exist_is_reported() {
    let table = Table::read("# comment\n5681 1 3 3.1\n");
    let page = Page::made_up(
        "a.md",
        "One.\nRFC 5681, section 3.1, and RFC 5681,\n3.9.\n\nRFC 42, section 1",
    );
    let found: Vec<_> = table.check(&page).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "a.md:2: RFC 5681 has no section 3.9; cite one of: 1 3 3.1",
            "a.md:5: cites RFC 42, section 1, but rfc-sections.txt has no RFC 42; add its sections",
        ]
    );
}
