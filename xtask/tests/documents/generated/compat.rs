//! `docs/compat.md`: support of RFC sections by each component.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::evidence::{self, Case, Tests};
use super::{data, from_docs};
use crate::citations::Table;
use crate::repository::Repository;

/// Columns of the page, in the order of the words of `support`.
const COLUMNS: [Group; 6] =
    [Group::Simulator, Group::Simulator, Group::Simulator, Group::Model, Group::Emu, Group::Relay];

/// Words of `support`, and how the page shows them.
const WORDS: [(&str, &str); 5] =
    [("yes", "yes"), ("partly", "partly"), ("no", "no"), ("kernel", "kernel"), ("-", "–")];

/// Largest number of cases, tests or files that a row names for a component.
const EVIDENCE_MAX: usize = 4;

/// Crates whose cited sections must be on the page.
const LISTED: [&str; 3] = ["gridhaul-core", "gridhaul-model", "gridhaul-relay"];

/// Page and tables of it whose rows must belong to an entry.
const DEVIATIONS: &str = "docs/limitations/tcp.md";
const TABLES: [&str; 3] = [
    "Not modelled",
    "Differences from Linux (profile `linux`)",
    "Differences from RFCs and papers (profile `rfc` and single algorithms)",
];

const INTRODUCTION: &str = "\
# Support of RFCs

<!-- Generated from docs/data/compat.toml, the conformance suite and the code: cargo xtask docs. -->

Each section of an RFC that the simulator, the model or the relay cites, and the known gaps. A
deviation that is not on this page is a defect: please report it.

| column | component |
|---|---|
| `rfc`, `linux`, `ns2` | simulator with this [profile](reference/profiles.md) of TCP; links |
| `model` | analytical model |
| `emu` | runs on a real kernel |
| `relay` | relay daemon: its own TCP, and its proxies between hosts |

**yes**: as the section requires; **partly**: with the difference in the last column; **no**:
absent; **kernel**: done by the Linux kernel, whose TCP sends and receives the segments; **–**: does
not concern the component. The last column but one names what shows it: cases of the
[conformance suite](../conformance/README.md), which run on the simulator and on the kernel, tests,
and where there is neither, the code that cites the section.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rfc: Option<String>,
    subject: String,
    support: String,
    #[serde(default)]
    tests: Vec<String>,
    note: Option<String>,
    #[serde(default)]
    deviations: Vec<String>,
}

/// A component whose tests and code show the support of several columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Simulator,
    Model,
    Emu,
    Relay,
}

impl Group {
    /// Whether a file is a part of the component, or tests it.
    fn has(self, path: &str) -> bool {
        let folders: &[&str] = match self {
            Self::Simulator => &[
                "conformance/",
                "crates/gridhaul-core/",
                "crates/gridhaul-sim/",
                "crates/gridhaul/",
            ],
            Self::Model => {
                &["crates/gridhaul-model/", "conformance/tests/integration/model_answers.rs"]
            }
            // The emulator has the links of the simulator.
            Self::Emu => {
                &["crates/gridhaul-emu/", "crates/gridhaul-core/src/link/", "conformance/"]
            }
            // The proxies have the TCP of the simulator.
            Self::Relay => &[
                "crates/gridhaul-relay/",
                "crates/gridhaul-core/src/pep/",
                "crates/gridhaul-core/src/tcp/",
                "crates/gridhaul-core/src/wire/",
                "crates/gridhaul-core/src/router/",
                "crates/gridhaul-core/tests/",
            ],
        };
        folders.iter().any(|folder| path.starts_with(folder))
    }
}

/// The page and what is wrong with its data.
pub(crate) struct Compat {
    pub(crate) page: String,
    pub(crate) errors: Vec<String>,
}

impl Compat {
    pub(crate) fn generate(repository: &Repository, table: &Table) -> Self {
        let file: File = data(repository, "compat");
        let sources = Sources {
            tests: Tests::read(repository),
            cases: Case::read_all(repository),
            citing: evidence::citing_files(repository),
        };
        let mut errors = Vec::new();
        let mut page = INTRODUCTION.to_owned();
        let mut rfc = None;
        for entry in &file.entry {
            let (number, section) = entry.section();
            if rfc != Some(number) {
                rfc = Some(number);
                let title = number.map_or("Without an RFC".to_owned(), |rfc| format!("RFC {rfc}"));
                page += &format!(
                    "\n## {title}\n\n| section | subject | `rfc` | `linux` | `ns2` | \
                                  `model` | `emu` | `relay` | shown by | difference |\n\
                                  |---|---|---|---|---|---|---|---|---|---|\n"
                );
            }
            if let (Some(rfc), Some(section)) = (number, section) {
                errors.extend(table.fault(rfc, section));
            }
            page += &sources.row(entry, &mut errors);
        }
        page += &deviations(repository, &sources.cases);
        errors.extend(unlisted_sections(&file, &sources));
        errors.extend(unlisted_deviations(repository, &file));
        Self { page, errors }
    }
}

impl Entry {
    fn section(&self) -> (Option<u32>, Option<&str>) {
        let Some(text) = &self.rfc else { return (None, None) };
        let (rfc, section) = text
            .split_once(", ")
            .map_or((text.as_str(), None), |(rfc, section)| (rfc, Some(section)));
        (Some(rfc.parse().unwrap_or_else(|_| panic!("{rfc} is the number of an RFC"))), section)
    }

    fn name(&self) -> &str {
        self.rfc.as_deref().unwrap_or(&self.subject)
    }
}

/// All that can show a statement.
struct Sources {
    tests: Tests,
    cases: Vec<Case>,
    citing: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    fn row(&self, entry: &Entry, errors: &mut Vec<String>) -> String {
        let name = entry.name();
        let words: Vec<_> = entry.support.split_whitespace().collect();
        if words.len() != COLUMNS.len() {
            errors.push(format!("{name}: support has {} words, and not six", words.len()));
        }
        for test in &entry.tests {
            if self.tests.files(test).is_empty() {
                errors.push(format!("{name}: there is no test {test}"));
            }
        }
        let mut cells = Vec::new();
        for (word, group) in words.iter().zip(COLUMNS) {
            let Some((_, shown)) = WORDS.iter().find(|(known, _)| known == word) else {
                errors.push(format!("{name}: {word} is no word of support"));
                continue;
            };
            cells.push(*shown);
            let stated = matches!(*word, "yes" | "partly");
            if stated && self.evidence(entry, group).is_empty() {
                errors.push(format!("{name}: nothing shows {word} of column {}", cells.len()));
            }
        }
        if words.contains(&"partly") && entry.note.is_none() && entry.deviations.is_empty() {
            errors.push(format!("{name}: partly, without the difference"));
        }
        let shown = self.shown(entry, &words);
        let note = entry.note.clone().unwrap_or_default();
        let links = entry.deviations.iter().map(|row| format!("[{row}](limitations/tcp.md)"));
        let links: Vec<_> = links.collect();
        let difference = [note, links.join(", ")]
            .iter()
            .filter(|text| !text.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join("; ");
        let section = entry.section().1.unwrap_or("");
        let cells = cells.join(" | ");
        format!("| {section} | {} | {cells} | {shown} | {difference} |\n", entry.subject)
    }

    /// Cases, tests and code of a component that show an entry. Code only if there is nothing else.
    fn evidence(&self, entry: &Entry, group: Group) -> Vec<String> {
        let is_of = |sections: &BTreeSet<String>| {
            entry.rfc.as_ref().is_some_and(|rfc| sections.contains(rfc))
        };
        let cases = self.cases.iter().filter(|case| is_of(&case.sections));
        let cases = cases.filter(|_| group == Group::Simulator);
        let cases = cases.map(|case| format!("[{0}](../conformance/cases/{0}.toml)", case.name));
        let tests = entry
            .tests
            .iter()
            .filter(|test| self.tests.files(test).iter().any(|path| group.has(path)));
        let mut found: Vec<_> = cases.chain(tests.map(|test| format!("`{test}`"))).collect();
        if found.is_empty() {
            let citing = entry.rfc.as_ref().and_then(|rfc| self.citing.get(rfc));
            let files = citing.into_iter().flatten().filter(|path| group.has(path));
            found.extend(files.map(|path| {
                let name = path.rsplit('/').next().unwrap_or(path);
                format!("[{name}]({})", from_docs(path))
            }));
        }
        found.truncate(EVIDENCE_MAX);
        found
    }

    fn shown(&self, entry: &Entry, words: &[&str]) -> String {
        let mut shown: Vec<String> = Vec::new();
        for (word, group) in words.iter().zip(COLUMNS) {
            if matches!(*word, "yes" | "partly") {
                let new = self.evidence(entry, group);
                shown.extend(
                    new.into_iter().filter(|text| !shown.contains(text)).collect::<Vec<_>>(),
                );
            }
        }
        shown.join(", ")
    }
}

/// The last section of the page: cases with a deviation, and the pages of limitations.
fn deviations(repository: &Repository, cases: &[Case]) -> String {
    let mut text = "\n## All deviations\n\nCases of the conformance suite that deviate from their \
                    RFC:\n\n"
        .to_owned();
    for case in cases {
        if let Some(deviation) = &case.deviation {
            let deviation = deviation.split_whitespace().collect::<Vec<_>>().join(" ");
            text += &format!("- [{0}](../conformance/cases/{0}.toml): {deviation}\n", case.name);
        }
    }
    text +=
        "\nPages of [limitations](limitations/README.md), with the subjects of their sections:\n\n";
    let is_page = |path: &&str| {
        path.starts_with("docs/limitations/")
            && path.ends_with(".md")
            && *path != "docs/limitations/README.md"
    };
    for path in repository.entries().filter(is_page) {
        let page = repository.page(path);
        let headings: Vec<_> = page.headings().iter().map(|piece| piece.text.to_owned()).collect();
        let (title, rest) = headings.split_first().expect("a page has a title");
        text += &format!("- [{title}]({}): {}\n", from_docs(path), rest.join("; "));
    }
    text
}

/// Sections that the code cites and that have no entry.
fn unlisted_sections(file: &File, sources: &Sources) -> Vec<String> {
    let known: BTreeSet<_> = file.entry.iter().filter_map(|entry| entry.rfc.as_deref()).collect();
    let is_listed =
        |path: &String| LISTED.iter().any(|name| path.starts_with(&format!("crates/{name}/")));
    let is_number = |section: &str| {
        section
            .split(", ")
            .nth(1)
            .is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let cited = sources.citing.iter().filter(|(_, files)| files.iter().any(is_listed));
    let of_cases = sources.cases.iter().flat_map(|case| &case.sections);
    let all: BTreeSet<_> = cited.map(|(section, _)| section).chain(of_cases).collect();
    let unlisted =
        all.into_iter().filter(|section| !known.contains(section.as_str()) && is_number(section));
    unlisted.map(|section| format!("RFC {section} is cited, but has no entry")).collect()
}

/// Rows of the tables of deviations that no entry has, and the other way round.
fn unlisted_deviations(repository: &Repository, file: &File) -> Vec<String> {
    let page = repository.page(DEVIATIONS);
    let mut rows = BTreeSet::new();
    let mut inside = false;
    for piece in page.prose() {
        let text = piece.text;
        if let Some(heading) = text.strip_prefix("## ") {
            inside = TABLES.contains(&heading);
        } else if inside && text.starts_with("| ") {
            let cell = text.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
            if !["feature", "subject"].contains(&cell) {
                rows.insert(cell.to_owned());
            }
        }
    }
    let listed: BTreeSet<_> =
        file.entry.iter().flat_map(|entry| entry.deviations.clone()).collect();
    let missing = rows.difference(&listed).map(|row| format!("no entry has the deviation {row}"));
    let gone = listed.difference(&rows).map(|row| format!("{DEVIATIONS} has no row {row}"));
    missing.chain(gone).collect()
}
