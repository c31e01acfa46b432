//! Statements of the report, compared with the measurements.

use serde::Serialize;

use super::matrix::{Cell, CellResult, OutageCell, SYSTEMS};

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

/// Results by system, protocol and rate, with 10 values and without Nagle's algorithm.
struct Results<'a>(&'a [Cell]);

impl<'a> Results<'a> {
    fn one(
        &self,
        system: &str,
        protocol: &str,
        rate: u32,
        nodelay: bool,
    ) -> Option<&'a CellResult> {
        let cell = self.0.iter().find(|it| {
            (it.system, it.protocol, it.rate_per_s) == (system, protocol, rate)
                && it.values == 10
                && it.nodelay == nodelay
        });
        cell?.result.as_ref()
    }

    /// Results at all rates, in ascending order of the rate; empty unless all are known.
    fn rates(&self, system: &str, protocol: &str) -> Vec<&'a CellResult> {
        let mut rates: Vec<_> = self.0.iter().map(|it| it.rate_per_s).collect();
        rates.sort_unstable();
        rates.dedup();
        let found: Option<Vec<_>> =
            rates.iter().map(|&rate| self.one(system, protocol, rate, true)).collect();
        found.unwrap_or_default()
    }
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

fn latency(results: &Results<'_>) -> Vec<Claim> {
    let udp = results.rates("ethernet", "udp");
    let mqtt = results.rates("ethernet", "mqtt");
    let sv = results.rates("5g-ready", "sv");
    let nr: Vec<_> =
        ["udp", "mqtt"].iter().flat_map(|it| results.rates("5g-prototype", it)).collect();
    let all = |of: &[&CellResult], holds: &dyn Fn(&CellResult) -> bool| {
        (!of.is_empty()).then(|| of.iter().all(|it| holds(it)))
    };
    let within = |low: f64, high: f64| move |it: &CellResult| (low..=high).contains(&it.mean_s);
    vec![
        Claim {
            section: "4.1",
            statement: "Ethernet: UDP has a lower mean latency than MQTT at every rate",
            measured: format!("UDP {}; MQTT {}", means(&udp), means(&mqtt)),
            holds: (!udp.is_empty() && udp.len() == mqtt.len())
                .then(|| udp.iter().zip(&mqtt).all(|(udp, mqtt)| udp.mean_s < mqtt.mean_s)),
        },
        Claim {
            section: "4.1",
            statement: "Ethernet: mean latencies are at most 0.9 ms",
            measured: format!("UDP {}; MQTT {}", means(&udp), means(&mqtt)),
            holds: all(&[&udp[..], &mqtt[..]].concat(), &within(0.0, 0.9e-3)),
        },
        Claim {
            section: "4.1",
            statement: "Ethernet: the latency of UDP does not depend on the rate (ratio of means at most 1.5)",
            measured: means(&udp),
            holds: ratio(&udp).map(|ratio| ratio <= 1.5),
        },
        Claim {
            section: "4.1",
            statement: "Ethernet: the latency of MQTT decreases with the rate",
            measured: means(&mqtt),
            holds: falls(&mqtt),
        },
        Claim {
            section: "4.2",
            statement: "5G-ready: the mean latency is between 15 and 25 ms (Sampled Values, 10 values)",
            measured: means(&sv),
            holds: all(&sv, &within(15e-3, 25e-3)),
        },
        Claim {
            section: "4.2",
            statement: "5G-ready: the mean latency decreases with the rate",
            measured: means(&sv),
            holds: falls(&sv),
        },
        Claim {
            section: "4.3",
            statement: "5G prototype: the mean latency in the uplink is between 2.5 and 6.5 ms",
            measured: means(&nr),
            holds: all(&nr, &within(2.5e-3, 6.5e-3)),
        },
    ]
}

fn order_and_confound(results: &Results<'_>) -> Vec<Claim> {
    let by_system: Vec<_> =
        SYSTEMS.iter().filter_map(|it| results.one(it, "mqtt", 100, true)).collect();
    let nagle = results.one("5g-ready", "mqtt", 100, false);
    let own = results.one("5g-ready", "mqtt", 100, true);
    vec![
        Claim {
            section: "4.5, Figure 10",
            statement: "Ethernet is faster than the 5G prototype, and the 5G prototype than the 5G-ready system",
            measured: format!("MQTT at 100/s: {}", means(&by_system)),
            holds: (by_system.len() == SYSTEMS.len())
                .then(|| by_system.is_sorted_by(|a, b| a.mean_s < b.mean_s)),
        },
        Claim {
            section: "",
            statement: "5G-ready: Nagle's algorithm alone raises the mean latency of MQTT at 100/s by more than a half",
            measured: format!("with {}; without {}", known(nagle), known(own)),
            holds: nagle.zip(own).map(|(nagle, own)| nagle.mean_s > 1.5 * own.mean_s),
        },
    ]
}

fn worst_cases(results: &Results<'_>, cells: &[Cell]) -> Vec<Claim> {
    let largest = |system: &str, protocol: &str| {
        results.rates(system, protocol).iter().map(|it| it.max_s).reduce(f64::max)
    };
    let ms =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |it| format!("{:.1} ms", it * 1e3));
    let (mqtt, sv) = (largest("5g-ready", "mqtt"), largest("5g-ready", "sv"));
    let prototype = largest("5g-prototype", "mqtt");
    let known = cells.iter().filter_map(|it| it.result.as_ref());
    let (missing, messages) =
        known.fold((0, 0), |(lost, all), it| (lost + it.missing, all + it.messages));
    vec![
        Claim {
            section: "4.2",
            statement: "5G-ready: the largest latency of MQTT is five times that of Sampled Values",
            measured: format!("MQTT {}, Sampled Values {}", ms(mqtt), ms(sv)),
            holds: mqtt.zip(sv).map(|(mqtt, sv)| mqtt >= 5.0 * sv),
        },
        Claim {
            section: "4.3",
            statement: "The largest latency on the 5G prototype is lower than on the 5G-ready system",
            measured: format!("MQTT: {} and {}", ms(prototype), ms(mqtt)),
            holds: prototype.zip(mqtt).map(|(prototype, ready)| prototype < ready),
        },
        Claim {
            section: "4.2, 4.5",
            statement: "No protocol loses a message without congestion",
            measured: format!("{missing} of {messages} messages missing"),
            holds: (messages > 0).then_some(missing == 0),
        },
    ]
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
    match cell.protocol {
        "mqtt" => Claim {
            section: "4.5",
            statement: "After an outage, MQTT resumes later than a message interval (RTO back-off of TCP), without losses",
            measured,
            holds: at_once.map(|at_once| !at_once && *lost + *refused == 0),
        },
        name => {
            let expected = length_s / interval_s;
            Claim {
                section: "4.2, 4.5",
                statement: if name == "sv" {
                    "After an outage, Sampled Values resume at once, and what was sent meanwhile is lost"
                } else {
                    "After an outage, UDP resumes at once, and what was sent meanwhile is lost"
                },
                measured,
                holds: at_once.map(|at_once| at_once && (*lost as f64 - expected).abs() <= 4.0),
            }
        }
    }
}

fn means(results: &[&CellResult]) -> String {
    let means: Vec<_> = results.iter().map(|it| format!("{:.2}", it.mean_s * 1e3)).collect();
    if means.is_empty() { "–".into() } else { format!("{} ms", means.join(", ")) }
}

fn known(result: Option<&CellResult>) -> String {
    means(&result.into_iter().collect::<Vec<_>>())
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |it| format!("{it:.3}"))
}

/// Largest mean divided by the least.
fn ratio(results: &[&CellResult]) -> Option<f64> {
    let means = || results.iter().map(|it| it.mean_s);
    Some(means().reduce(f64::max)? / means().reduce(f64::min)?)
}

/// Whether the mean at the highest rate is below that at the lowest.
fn falls(results: &[&CellResult]) -> Option<bool> {
    let (first, last) = (results.first()?, results.last()?);
    (results.len() > 1).then_some(last.mean_s < first.mean_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(system: &'static str, protocol: &'static str, rate: u32, mean_s: f64) -> Cell {
        let result = CellResult {
            messages: 100,
            missing: 0,
            mean_s,
            p2_s: mean_s,
            p25_s: mean_s,
            p75_s: mean_s,
            p98_s: mean_s,
            p999_s: None,
            max_s: mean_s,
            invalid: Vec::new(),
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
    fn a_missing_rate_leaves_a_claim_open() {
        let mut cells = vec![cell("5g-ready", "sv", 10, 18e-3), cell("5g-ready", "sv", 100, 18e-3)];
        cells[1].result = None;
        assert_eq!(verdict(&cells, "5G-ready: the mean latency is"), None);
    }
}
