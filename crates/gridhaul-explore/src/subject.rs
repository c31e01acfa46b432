//! The scenario, the results or the capture that a page shows.

use gridhaul_capture::Explanation;
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::Record;

/// Built-in scenario: one bulk flow over a slow link.
const EXAMPLE: &str = include_str!("../page/example.toml");

/// A scenario, and results if the page was opened for them.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The scenario, without a sweep (that of its first point) and without recordings.
    pub(crate) scenario: Scenario,
    /// Path of the file for commands, if a run of the file is a run of `scenario`.
    pub(crate) file: Option<String>,
    /// Whether the file has a sweep, which the page leaves out.
    pub(crate) is_first_point: bool,
    /// Stored answers.
    pub(crate) results: Option<Results>,
    /// A capture, which the page shows in the place of a scenario.
    pub(crate) capture: Option<Capture>,
}

/// A packet capture.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Paths of its files for commands.
    pub files: Vec<String>,
    /// Its explanation, with the history of each connection.
    pub explanation: Explanation,
}

/// The stored answers of a results folder.
#[derive(Debug, Clone)]
pub struct Results {
    /// Path of the folder or file for commands.
    pub path: String,
    /// The answers, each with the label that `gridhaul export` gives it.
    pub answers: Vec<(String, Answer)>,
}

impl Subject {
    /// A scenario of a file with this path.
    ///
    /// # Errors
    /// The sweep of the scenario has no valid point.
    pub fn of_scenario(scenario: &Scenario, path: &str) -> Result<Self, String> {
        let is_first_point = !scenario.sweep.is_empty();
        let mut explored = scenario.clone();
        if is_first_point {
            let points = scenario.sweep_points().map_err(|error| error.to_string())?;
            let first = points.iter().next().ok_or("the sweep has no point")?;
            explored = first.map_err(|error| error.to_string())?.scenario;
            explored.sweep.clear();
        }
        // The equations support no recordings, and the page makes its own.
        let record = std::mem::take(&mut explored.record);
        let is_as_in_file = !is_first_point && record == Record::default();
        let file = is_as_in_file.then(|| path.to_owned());
        Ok(Self { scenario: explored, file, is_first_point, results: None, capture: None })
    }

    /// The built-in scenario.
    ///
    /// # Errors
    /// The built-in scenario is not valid, which a test excludes.
    pub fn example() -> Result<Self, String> {
        let scenario = Scenario::from_toml(EXAMPLE, "built-in example");
        let scenario = scenario.map_err(|error| error.to_string())?;
        Ok(Self { scenario, file: None, is_first_point: false, results: None, capture: None })
    }

    /// The same with stored results, which the page shows first.
    #[must_use]
    pub fn with_results(self, results: Results) -> Self {
        Self { results: Some(results), ..self }
    }

    /// The same with a capture, which the page shows in the place of the scenario.
    #[must_use]
    pub fn with_capture(self, capture: Capture) -> Self {
        Self { capture: Some(capture), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_bulk_flow_of_60_s() {
        let subject = Subject::example().unwrap();
        assert_eq!(subject.scenario.duration.as_secs_f64(), 60.0);
        assert_eq!(subject.scenario.flow.len(), 1);
    }

    #[test]
    fn of_a_sweep_the_first_point_is_explored() {
        let text = format!(
            "{EXAMPLE}\n[[sweep]]\nvary.\"link.feeder.both.delay\" = \
                            [\"7 ms\", \"9 ms\"]\n"
        );
        let scenario = Scenario::from_toml(&text, "a.toml").unwrap();
        let subject = Subject::of_scenario(&scenario, "a.toml").unwrap();
        assert!(subject.is_first_point && subject.scenario.sweep.is_empty());
        assert_eq!(subject.file, None, "a run of the file would run all points");
        let delay = subject.scenario.link["feeder"].forward().unwrap().delay;
        assert_eq!(delay.to_string(), "7 ms");
    }

    #[test]
    fn recordings_of_the_file_are_left_out() {
        let text = format!("{EXAMPLE}\n[record]\ninterval = \"1 s\"\n");
        let scenario = Scenario::from_toml(&text, "a.toml").unwrap();
        let subject = Subject::of_scenario(&scenario, "a.toml").unwrap();
        assert_eq!((subject.scenario.record.interval, subject.file), (None, None));
        let plain = Scenario::from_toml(EXAMPLE, "a.toml").unwrap();
        assert_eq!(Subject::of_scenario(&plain, "a.toml").unwrap().file.as_deref(), Some("a.toml"));
    }
}
