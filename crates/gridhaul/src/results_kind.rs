//! Kinds of results in a folder: results of another kind are not replaced without `--force`.

use std::path::Path;

use crate::result_file;

/// The results that a command is about to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResultsKind {
    pub(crate) command: ResultsOf,
    /// Title of the scenario; `None` if the results are not those of one scenario.
    pub(crate) title: Option<String>,
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
        let first = |written: bool, is_kind: &dyn Fn(&str) -> bool| {
            if written { None } else { names.iter().find(|name| is_kind(name)) }
        };
        let of_backend = |name: &str| name.starts_with("answer-") && name.ends_with(".json");
        let several = self.several_backends || found != ResultsOf::Run;
        let captures = first(self.captures, &|name| name.ends_with(".pcapng"));
        let series = first(self.series, &|name| name.ends_with(".parquet"));
        let logs = first(self.event_logs, &|name| name.ends_with(".jsonl"));
        let backends = first(several, &of_backend);
        (captures.map(|name| format!("captured packets ({name})")))
            .or_else(|| series.map(|name| format!("recorded series ({name})")))
            .or_else(|| logs.map(|name| format!("an event log ({name})")))
            .or_else(|| backends.map(|name| format!("the answer of another backend ({name})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_the_same_kind_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let answer = r#"{"schema": 1, "gridhaul": "0.1.0", "title": "Feeder", "points": []}"#;
        std::fs::write(dir.path().join("answer.json"), answer).unwrap();
        let run = ResultsKind::of(ResultsOf::Run, Some("Feeder"));
        let lost = |kind: &ResultsKind, names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            kind.lost(dir.path(), &names)
        };
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
