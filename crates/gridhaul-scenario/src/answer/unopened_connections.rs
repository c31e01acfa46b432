//! Warnings about connections that failed to open.

use super::{Answer, Metric, Row, Warning};
use crate::scenario::Scenario;
use crate::units::counted;

impl Answer {
    /// Adds a warning for each row with connections that failed to open, after all points have been
    /// added. The messages of such a connection are late or lost.
    pub fn warn_of_failed_connections(&mut self, scenario: &Scenario) {
        let points = self.points.len();
        let mut warnings: Vec<Warning> = Vec::new();
        let rows = self.points.iter().flat_map(|point| &point.flows);
        let mut names: Vec<&str> = rows.map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let rows = self.points.iter().flat_map(|point| &point.flows);
            let of_name = rows.filter(|row| row.name == name);
            let affected: Vec<(f64, &Row)> = of_name
                .filter_map(|row| Some((row.mean(Metric::ConnectionsFailed)?, row)))
                .filter(|(failed, _)| *failed > 0.0)
                .collect();
            let Some((failed, row)) = affected.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
                continue;
            };
            let is_flow = scenario.flow.contains_key(name);
            let about = if is_flow { format!("flow.{name}") } else { name.to_owned() };
            let which_point = match (points, affected.len()) {
                (1, _) => String::new(),
                (_, number) => format!(" (at the worst of {})", counted(number, "affected point")),
            };
            let (failed, remedy) = (rounded(*failed), remedy(scenario, row));
            let reconnects = scenario.flow.get(name).is_some_and(|flow| flow.manages_connections());
            let message = if reconnects {
                // The device tries again: a reading is late, and the number may exceed that of the
                // devices.
                format!(
                    "{failed} attempts to connect failed{which_point}: their messages wait for the \
                     next one. {remedy}"
                )
            } else {
                format!(
                    "{failed} of {} failed to open{which_point}: their messages count as late or \
                     lost. {remedy}",
                    counted(row.count, "connection"),
                )
            };
            warnings.push(Warning { about, message });
        }
        self.warnings.append(&mut warnings);
    }
}

/// The likely causes and the remedy. With `start_spread` or `synchronised`, all SYN segments of
/// several connections may be sent at about the same time.
fn remedy(scenario: &Scenario, row: &Row) -> String {
    let may_start_together = match scenario.flow.get(&row.name) {
        // The number of connections may be swept, or that of the members of a group.
        Some(flow) => row.count > 1 && (flow.start_spread.is_some() || flow.load.is_synchronised()),
        // An upstream connection.
        None => {
            let mut aggregators =
                scenario.node.values().filter_map(|node| node.aggregator.as_ref());
            aggregators.any(|aggregator| aggregator.start_spread.is_some())
        }
    };
    let mut causes = String::new();
    if let Some(link) = link_with_outage(scenario) {
        causes += &format!("Attempts during an outage of `link.{link}` fail. ");
    }
    if may_start_together {
        causes += "SYN segments that are sent at the same time overflow the queue, and so do their \
                   retransmissions: enlarge or remove `start_spread`, and remove `synchronised`. ";
    }
    let check = if causes.is_empty() { "Check" } else { "Otherwise check" };
    format!("{causes}{check} the load, the links on the path and `duration`")
}

/// The first link with an outage in one direction at least.
fn link_with_outage(scenario: &Scenario) -> Option<&str> {
    let mut links = scenario.link.iter();
    let found = links.find(|(_, link)| link.given().any(|(_, part)| !part.outage.is_empty()));
    found.map(|(name, _)| name.as_str())
}

/// A mean over replications, with a decimal if it is not a whole number.
fn rounded(mean: f64) -> String {
    if mean.fract() == 0.0 { format!("{mean}") } else { format!("on average {mean:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Estimate, Point};

    fn row(name: &str, failed: &[f64]) -> Row {
        let metrics = [(Metric::ConnectionsFailed, Estimate::of(failed))].into();
        Row { name: name.to_owned(), count: 500, metrics, ..Row::default() }
    }

    fn point(rows: Vec<Row>) -> Point {
        Point { flows: rows, ..Point::default() }
    }

    #[test]
    fn the_warning_is_about_the_worst_point_of_each_row() {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n\
                    [link.l]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
                    [flow.f]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"";
        let scenario = Scenario::from_toml(text, "test.toml").unwrap();
        let mut answer = Answer::without_points(&scenario, "sim");
        answer.points = vec![
            point(vec![row("f", &[0.0, 1.0]), row("hub>b", &[0.0])]),
            point(vec![row("f", &[0.0]), row("hub>b", &[7.0])]),
            point(vec![row("f", &[3.0])]),
        ];
        answer.warn_of_failed_connections(&scenario);
        let begins = |of: &str, with: &str| {
            let found = answer.warnings.iter().find(|warning| warning.about == of).unwrap();
            assert!(found.message.starts_with(with), "{}", found.message);
        };
        begins("flow.f", "3 of 500 connections failed to open (at the worst of 2 affected points)");
        begins("hub>b", "7 of 500 connections failed to open (at the worst of 1 affected point)");
        answer.warnings.clear();
        answer.points.truncate(1);
        answer.warn_of_failed_connections(&scenario);
        let [only] = &answer.warnings[..] else { panic!("{:?}", answer.warnings) };
        assert!(only.message.starts_with("on average 0.5 of 500 connections"), "{}", only.message);
        assert!(!only.message.contains("start_spread"), "{}", only.message);
    }

    #[test]
    fn devices_that_try_again_have_failed_attempts() {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n\
                    [link.l]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
                    [flow.f]\nfrom = \"a\"\nto = \"b\"\nreconnect.pause = \"1 s\"\n\
                    load.periodic = { size = \"1 kB\", every = \"1 s\" }";
        let scenario = Scenario::from_toml(text, "test.toml").unwrap();
        let mut answer = Answer::without_points(&scenario, "sim");
        answer.points = vec![point(vec![row("f", &[700.0])])];
        answer.warn_of_failed_connections(&scenario);
        let message = &answer.warnings[0].message;
        assert!(message.starts_with("700 attempts to connect failed: their"), "{message}");
    }

    #[test]
    fn the_causes_are_those_of_the_scenario() {
        let advice = |count: u32, keys: &str, load: &str, link: &str| {
            let text = format!(
                "title = \"t\"\nduration = \"9 s\"\n[node]\na = {{}}\nb = {{}}\n\
                 [link.l]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n{link}\n\
                 [flow.f]\nfrom = \"a\"\nto = \"b\"\n{keys}\n\
                 load.poisson = {{ size = \"1 B\", every = \"1 s\"{load} }}"
            );
            let row = Row { count: count.into(), ..row("f", &[3.0]) };
            remedy(&Scenario::from_toml(&text, "test.toml").unwrap(), &row)
        };
        let check = "the load, the links on the path and `duration`";
        assert_eq!(advice(5, "", "", ""), format!("Check {check}"));
        assert!(advice(5, "start_spread = \"0 s\"", "", "").contains("same time"));
        assert!(advice(5, "", ", synchronised = true", "").contains("same time"));
        let outage = "both.outage = [{ start = \"1 s\", length = \"1 s\" }]";
        assert_eq!(
            advice(1, "", ", synchronised = true", outage),
            format!("Attempts during an outage of `link.l` fail. Otherwise check {check}"),
            "one device does not overflow a queue"
        );
    }
}
