//! Kinds of results in a folder: results of another kind are not replaced without `--force`.

use std::path::Path;

use gridhaul_scenario::table::TableName;

use crate::result_file;

/// Tables of a sweep. In the folder, each is a Parquet file with its name, as a series is.
pub(crate) const SWEEP_TABLES: [TableName; 2] = [TableName::Answers, TableName::Replications];

/// The scenario of the results, with the changes of the command line.
pub(crate) const SCENARIO: &str = "scenario.toml";

/// The results that a command is about to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResultsKind {
    pub(crate) command: ResultsOf,
    /// Title of the scenario; `None` if the results are not those of one scenario.
    pub(crate) title: Option<String>,
    /// Whether the scenario has a sweep. A run of such a scenario has the results of its sweep.
    pub(crate) is_sweep: bool,
    /// Whether there are tables of a sweep.
    pub(crate) sweep_tables: bool,
    /// Whether packets and series are recorded.
    pub(crate) captures: bool,
    pub(crate) series: bool,
    /// Whether events are logged.
    pub(crate) event_logs: bool,
    /// Whether there are answers of several backends.
    pub(crate) several_backends: bool,
}

/// The command that writes the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResultsOf {
    #[default]
    Run,
    Compare,
    Paper,
    Plan,
}

impl ResultsOf {
    /// In the order in which a folder is examined: a run with several backends has a comparison as
    /// well, and a paper has answers.
    const ALL: [Self; 4] = [Self::Plan, Self::Paper, Self::Run, Self::Compare];

    /// The file that every results folder of the command contains: JSON with the key `gridhaul`.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Run => "answer.json",
            Self::Compare => "comparison.json",
            Self::Paper => "paper.json",
            Self::Plan => "plan.json",
        }
    }

    const fn command(self) -> &'static str {
        match self {
            Self::Run => "gridhaul run",
            Self::Compare => "gridhaul compare",
            Self::Paper => "gridhaul paper",
            Self::Plan => "gridhaul plan",
        }
    }

    /// Whether a file identifies a results folder.
    pub(crate) fn is_mark(name: &str) -> bool {
        Self::ALL.iter().any(|own| own.file() == name)
    }

    /// Whether a folder contains results of any command.
    pub(crate) fn marks(folder: &Path) -> bool {
        Self::ALL.iter().any(|own| result_file::is_marked(&folder.join(own.file())))
    }
}

impl ResultsKind {
    /// Results of a command without recordings.
    pub(crate) fn of(command: ResultsOf, title: Option<&str>) -> Self {
        Self { command, title: title.map(str::to_owned), ..Self::default() }
    }

    /// Results in a folder with these files that would be lost, because the new results contain
    /// nothing of their kind.
    pub(crate) fn lost(&self, folder: &Path, names: &[String]) -> Option<String> {
        let has = |name: &str| names.iter().any(|other| other == name);
        let found = ResultsOf::ALL.into_iter().find(|own| has(own.file()))?;
        if found != self.command {
            return Some(format!("results of `{}` ({})", found.command(), found.file()));
        }
        let title = result_file::title(&folder.join(found.file()));
        if let (Some(old), Some(new)) = (title, &self.title)
            && old != *new
        {
            return Some(format!("the results of another scenario, {old:?}"));
        }
        if found == ResultsOf::Run
            && let Some(is_sweep) = result_file::has_sweep(&folder.join(SCENARIO))
            && is_sweep != self.is_sweep
        {
            let old = if is_sweep { "a sweep" } else { "a run without a sweep" };
            return Some(format!("the results of {old} ({})", found.file()));
        }
        self.lost_recording(names)
    }

    /// The first file that would be lost, of a kind that the new results do not have.
    fn lost_recording(&self, names: &[String]) -> Option<String> {
        let of_backend = |name: &str| name.starts_with("answer-") && name.ends_with(".json");
        let several = self.several_backends || self.command != ResultsOf::Run;
        let kinds: [(bool, &str, IsOfKind<'_>); 5] = [
            (self.captures, "captured packets", &|name| name.ends_with(".pcapng")),
            (self.sweep_tables, "tables of a sweep", &is_sweep_table),
            (self.series, "recorded series", &|name| {
                name.ends_with(".parquet") && !is_sweep_table(name)
            }),
            (self.event_logs, "an event log", &|name| name.ends_with(".jsonl")),
            (several, "the answer of another backend", &of_backend),
        ];
        kinds.iter().filter(|(is_written, ..)| !is_written).find_map(|(_, kind, is_kind)| {
            let name = names.iter().find(|name| is_kind(name))?;
            Some(format!("{kind} ({name})"))
        })
    }
}

/// Whether a file with this name is of a kind.
type IsOfKind<'a> = &'a dyn Fn(&str) -> bool;

fn is_sweep_table(name: &str) -> bool {
    SWEEP_TABLES.iter().any(|table| sweep_table_file(*table) == name)
}

/// The file of a table of a sweep.
pub(crate) fn sweep_table_file(table: TableName) -> String {
    format!("{table}.parquet")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the results of the scenario "Feeder".
    fn folder(scenario: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let answer = r#"{"schema": 1, "gridhaul": "0.1.0", "title": "Feeder", "points": []}"#;
        std::fs::write(dir.path().join("answer.json"), answer).unwrap();
        std::fs::write(dir.path().join("scenario.toml"), scenario).unwrap();
        dir
    }

    fn lost_in(folder: &Path, kind: &ResultsKind, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        kind.lost(folder, &names)
    }

    #[test]
    fn a_sweep_and_a_run_without_one_do_not_replace_each_other() {
        let run = ResultsKind::of(ResultsOf::Run, Some("Feeder"));
        let sweep = ResultsKind { is_sweep: true, sweep_tables: true, ..run.clone() };
        let names = ["answer.json", "scenario.toml"];
        let (once, swept) = (folder("title = \"Feeder\"\nsweep = []\n"), folder(SWEEP));
        assert_eq!(lost_in(once.path(), &run, &names), None);
        let lost = lost_in(once.path(), &sweep, &names).unwrap();
        assert_eq!(lost, "the results of a run without a sweep (answer.json)");
        let tables = ["answer.json", "answers.parquet", "replications.parquet", "scenario.toml"];
        assert_eq!(lost_in(swept.path(), &sweep, &tables), None);
        let lost = lost_in(swept.path(), &run, &tables).unwrap();
        assert_eq!(lost, "the results of a sweep (answer.json)");
        // A run of a scenario with a sweep has no tables, and a sweep records no series.
        let run = ResultsKind { is_sweep: true, series: true, ..run };
        let lost = lost_in(swept.path(), &run, &tables).unwrap();
        assert_eq!(lost, "tables of a sweep (answers.parquet)");
        let lost = lost_in(swept.path(), &sweep, &["answer.json", "windows.parquet"]).unwrap();
        assert_eq!(lost, "recorded series (windows.parquet)");
    }

    const SWEEP: &str = "title = \"Feeder\"\n[[sweep]]\nvary.seed = [1, 2]\n";

    #[test]
    fn results_of_the_same_kind_are_replaced() {
        let dir = folder("title = \"Feeder\"\n");
        let run = ResultsKind::of(ResultsOf::Run, Some("Feeder"));
        let lost = |kind: &ResultsKind, names: &[&str]| lost_in(dir.path(), kind, names);
        assert_eq!(lost(&run, &["answer.json", "report.html", "goodput.svg"]), None);
        assert_eq!(lost(&run, &[]), None);
        let recorded = ["answer.json", "wire.forward.pcapng", "windows.parquet"];
        assert_eq!(lost(&run, &recorded).unwrap(), "captured packets (wire.forward.pcapng)");
        let capturing = ResultsKind { captures: true, ..run.clone() };
        assert_eq!(lost(&capturing, &recorded).unwrap(), "recorded series (windows.parquet)");
        assert_eq!(lost(&ResultsKind { series: true, ..capturing }, &recorded), None);
        let logged = ["answer.json", "events/up.jsonl"];
        assert_eq!(lost(&run, &logged).unwrap(), "an event log (events/up.jsonl)");
        assert_eq!(lost(&ResultsKind { event_logs: true, ..run.clone() }, &logged), None);
        let several = ["answer.json", "answer-model.json", "comparison.json"];
        assert_eq!(
            lost(&run, &several).unwrap(),
            "the answer of another backend (answer-model.json)"
        );
        assert_eq!(lost(&ResultsKind { several_backends: true, ..run.clone() }, &several), None);
        let other = ResultsKind::of(ResultsOf::Run, Some("District"));
        assert_eq!(
            lost(&other, &["answer.json"]).unwrap(),
            "the results of another scenario, \"Feeder\""
        );
        assert_eq!(
            lost(&run, &["plan.json", "scenario.toml"]).unwrap(),
            "results of `gridhaul plan` (plan.json)"
        );
        let paper = ResultsKind::of(ResultsOf::Paper, None);
        assert_eq!(lost(&paper, &["paper.json", "answer-f5.json"]), None);
    }
}
