//! Statements of the report, compared with the measurements.

mod figures;
mod results;

use serde::Serialize;

use super::matrix::{AMQP, Cell};
use super::outages::{OutageCell, is_over_tcp};
use figures::{latency, order_and_confound, worst_cases};
use results::Results;

/// A statement and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Claim {
    /// Section of the report; empty for a finding that the report does not have.
    pub(super) section: &'static str,
    pub(super) statement: &'static str,
    pub(super) measured: String,
    /// `None` if a measurement is missing.
    pub(super) holds: Option<bool>,
}

/// All statements that can be checked.
pub(super) fn claims(cells: &[Cell], outages: &[OutageCell]) -> Vec<Claim> {
    let results = Results(cells);
    let mut claims = latency(&results);
    claims.extend(order_and_confound(&results));
    claims.extend(worst_cases(&results, cells));
    claims.extend(outages.iter().map(outage));
    claims
}

/// Sections 4.2 and 4.5: Sampled Values resume at once and lose what was sent meanwhile; protocols over TCP are slower.
fn outage(cell: &OutageCell) -> Claim {
    let OutageCell { length_s, interval_s, lost, refused, reconnections, .. } = cell;
    let measured = format!(
        "{length_s} s: {} s without an arrival, {} s after the end, {lost} lost, {refused} refused, {reconnections} reconnections",
        seconds(cell.without_arrival_s),
        seconds(cell.first_arrival_after_end_s),
    );
    let first = cell.first_arrival_after_end_s;
    // A message interval, and the delay of the link with its jitter.
    let at_once = first.map(|it| it <= interval_s + 0.05);
    if is_over_tcp(cell.protocol) {
        return Claim {
            section: "4.5",
            statement: if cell.protocol == AMQP {
                "After an outage, AMQP resumes later than a message interval (RTO back-off of TCP), without losses"
            } else {
                "After an outage, MQTT resumes later than a message interval (RTO back-off of TCP), without losses"
            },
            measured,
            holds: at_once.map(|at_once| !at_once && *lost + *refused == 0),
        };
    }
    let expected = length_s / interval_s;
    Claim {
        section: "4.2, 4.5",
        statement: if cell.protocol == "sv" {
            "After an outage, Sampled Values resume at once, and what was sent meanwhile is lost"
        } else {
            "After an outage, UDP resumes at once, and what was sent meanwhile is lost"
        },
        measured,
        holds: at_once.map(|at_once| at_once && (*lost as f64 - expected).abs() <= 4.0),
    }
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |it| format!("{it:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cells::CellResult;

    fn cell(system: &'static str, protocol: &'static str, rate: u32, mean_s: f64) -> Cell {
        let result = CellResult {
            messages: 100,
            missing: 0,
            mean_s,
            p2_s: mean_s,
            p25_s: mean_s,
            p50_s: None,
            p75_s: mean_s,
            p98_s: mean_s,
            p999_s: None,
            max_s: mean_s,
            invalid: Vec::new(),
            settings: Vec::new(),
        };
        let (command, result) = (String::new(), Some(result));
        Cell {
            system,
            protocol,
            rate_per_s: rate,
            values: 10,
            nodelay: true,
            command,
            result,
            error: None,
        }
    }

    fn verdict(cells: &[Cell], start: &str) -> Option<bool> {
        let claims = claims(cells, &[]);
        claims.into_iter().find(|claim| claim.statement.starts_with(start)).unwrap().holds
    }

    #[test]
    fn claims_follow_the_measurements() {
        let ordered =
            |udp, mqtt| [cell("ethernet", "udp", 100, udp), cell("ethernet", "mqtt", 100, mqtt)];
        assert_eq!(verdict(&ordered(1e-4, 5e-4), "Ethernet: UDP has"), Some(true));
        assert_eq!(verdict(&ordered(6e-4, 5e-4), "Ethernet: UDP has"), Some(false));
        assert_eq!(verdict(&ordered(1e-4, 2e-3), "Ethernet: mean latencies"), Some(false));
        assert_eq!(verdict(&[], "Ethernet: UDP has"), None);
        let ready = |means: [f64; 2]| {
            [cell("5g-ready", "sv", 10, means[0]), cell("5g-ready", "sv", 1_000, means[1])]
        };
        assert_eq!(
            verdict(&ready([18e-3, 17e-3]), "5G-ready: the mean latency decreases"),
            Some(true)
        );
        assert_eq!(verdict(&ready([18e-3, 26e-3]), "5G-ready: the mean latency is"), Some(false));
    }

    #[test]
    fn mqtt_and_amqp_are_compared_where_both_are_known() {
        let cells = [
            cell("ethernet", "mqtt", 100, 9e-4),
            cell("ethernet", AMQP, 100, 4e-4),
            cell("5g-ready", "mqtt", 100, 18e-3),
            cell("5g-ready", AMQP, 100, 17e-3),
            cell("5g-prototype", "mqtt", 100, 3e-3),
            cell("5g-prototype", AMQP, 100, 4e-3),
        ];
        assert_eq!(verdict(&cells, "In most cases"), Some(true));
        assert_eq!(verdict(&cells[2..], "In most cases"), Some(false), "one of two");
        assert_eq!(verdict(&cells[..1], "In most cases"), None);
        assert_eq!(verdict(&cells, "AMQP: Ethernet is faster"), Some(true));
        assert_eq!(verdict(&cells[2..], "AMQP: Ethernet is faster"), None);
        assert_eq!(verdict(&cells, "Ethernet: MQTT has the highest"), Some(true));
        let mut confound = cells.to_vec();
        confound.push(Cell { nodelay: false, ..cell("5g-ready", "mqtt", 100, 34e-3) });
        assert_eq!(verdict(&confound, "5G-ready: at 100/s, Nagle"), Some(true));
        assert_eq!(verdict(&cells, "5G-ready: at 100/s, Nagle"), None);
    }

    #[test]
    fn a_missing_rate_leaves_a_claim_open() {
        let mut cells = vec![cell("5g-ready", "sv", 10, 18e-3), cell("5g-ready", "sv", 100, 18e-3)];
        cells[1].result = None;
        assert_eq!(verdict(&cells, "5G-ready: the mean latency is"), None);
    }
}
