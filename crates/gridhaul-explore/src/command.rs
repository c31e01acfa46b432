//! The command line that prints the numbers of a page.

use crate::runner::Changes;
use crate::subject::Subject;

/// The command. Without a file it runs the scenario that the page copies as `scenario.toml`, which
/// has all changes but the recordings.
pub(crate) fn of(subject: &Subject, changes: &Changes, backends: &[&str]) -> String {
    let mut options = Vec::new();
    let file = subject.file.as_deref().unwrap_or("scenario.toml");
    if subject.file.is_some() {
        options.extend(changes.settings.iter().map(|setting| format!("--set {}", quoted(setting))));
        options.extend(changes.seed.map(|seed| format!("--seed {seed}")));
        options.extend(changes.replications.map(|count| format!("--replications {count}")));
    }
    let series = changes.series.map(|interval| quoted(&interval.to_string()));
    options.extend(series.map(|interval| format!("--series {interval}")));
    options.extend(changes.pcap.iter().map(|link| format!("--pcap {}", quoted(link))));
    options.extend(changes.events.iter().map(|flow| format!("--events {}", quoted(flow))));
    if backends != ["sim"] {
        options.push(format!("--on {}", backends.join(",")));
    }
    let words = ["gridhaul run".to_owned(), quoted(file)].into_iter().chain(options);
    words.collect::<Vec<_>>().join(" ")
}

/// The command that explains captures, with options that are quoted already.
pub(crate) fn explain(files: &[String], options: &[String]) -> String {
    let files = files.iter().map(|file| quoted(file));
    let words = ["gridhaul explain".to_owned()].into_iter().chain(files);
    words.chain(options.iter().cloned()).collect::<Vec<_>>().join(" ")
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    #[test]
    fn the_command_has_the_changes_in_quotes_where_needed() {
        let changes = Changes {
            settings: vec!["link.a.both.rate=3 Mbit/s".to_owned(), "flow.f.count=3".to_owned()],
            seed: Some(7),
            replications: Some(1),
            series: Some(Duration::from_millis(100)),
            pcap: vec!["a".to_owned()],
            events: vec!["f".to_owned()],
        };
        let example = Subject::example().unwrap();
        let recordings = "--series '100 ms' --pcap a --events f";
        let of_example = of(&example, &changes, &["sim"]);
        assert_eq!(of_example, format!("gridhaul run scenario.toml {recordings}"));
        let of_file = Subject { file: Some("my line.toml".to_owned()), ..example };
        assert_eq!(
            of(&of_file, &changes, &["sim", "model"]),
            "gridhaul run 'my line.toml' --set 'link.a.both.rate=3 Mbit/s' --set flow.f.count=3 \
             --seed 7 --replications 1 --series '100 ms' --pcap a --events f --on sim,model"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
