//! Statements about the latency on each system: figures 6, 7, 8 and 10.

use super::Claim;
use super::results::{Results, all_within, are_below, falls, known, means, ratio};
use crate::command::cells::CellResult;
use crate::command::reserve::matrix::{AMQP, Cell, SYSTEMS};

/// Figures 6 to 8.
pub(super) fn latency(results: &Results<'_>) -> Vec<Claim> {
    let ready = |protocol: &str| results.rates("5g-ready", protocol);
    let (sv, amqp) = (ready("sv"), ready(AMQP));
    let prototype = |protocol: &&str| results.rates("5g-prototype", protocol);
    let nr: Vec<_> = ["udp", "mqtt", AMQP].iter().flat_map(prototype).collect();
    let figure_7 = Statements("4.2, Figure 7");
    let mut claims = on_ethernet(results);
    claims.extend([
        figure_7.within(
            "5G-ready: the mean latency is between 15 and 25 ms (Sampled Values, 10 values)",
            &sv,
            [15e-3, 25e-3],
        ),
        figure_7.within(
            "5G-ready: the mean latency of AMQP is between 15 and 25 ms (10 values)",
            &amqp,
            [15e-3, 25e-3],
        ),
        figure_7
            .falling("5G-ready: the mean latency decreases with the rate (Sampled Values)", &sv),
        figure_7.falling("5G-ready: the mean latency of AMQP decreases with the rate", &amqp),
        Statements("4.3, Figure 8").within(
            "5G prototype: the mean latency in the uplink is between 2.5 and 6.5 ms",
            &nr,
            [2.5e-3, 6.5e-3],
        ),
    ]);
    claims
}

/// Section 4.1 and Figure 6.
fn on_ethernet(results: &Results<'_>) -> Vec<Claim> {
    let [udp, mqtt, amqp] = ["udp", "mqtt", AMQP].map(|it| results.rates("ethernet", it));
    let figure_6 = Statements("4.1, Figure 6");
    vec![
        figure_6.below(
            "Ethernet: UDP has a lower mean latency than MQTT at every rate",
            ("UDP", &udp),
            ("MQTT", &mqtt),
        ),
        figure_6.below(
            "Ethernet: UDP has a lower mean latency than AMQP at every rate",
            ("UDP", &udp),
            ("AMQP", &amqp),
        ),
        figure_6.below(
            "Ethernet: MQTT has the highest mean latency, above AMQP at every rate",
            ("AMQP", &amqp),
            ("MQTT", &mqtt),
        ),
        figure_6.within(
            "Ethernet: mean latencies are at most 0.9 ms",
            &[&udp[..], &mqtt[..]].concat(),
            [0.0, 0.9e-3],
        ),
        figure_6.within(
            "Ethernet: the mean latency of AMQP is between 0.3 and 0.45 ms",
            &amqp,
            [0.3e-3, 0.45e-3],
        ),
        figure_6.claim(
            "Ethernet: the latency of UDP does not depend on the rate (ratio of means at most 1.5)",
            means(&udp),
            ratio(&udp).map(|ratio| ratio <= 1.5),
        ),
        figure_6.falling("Ethernet: the latency of MQTT decreases with the rate", &mqtt),
        figure_6.falling("Ethernet: the latency of AMQP decreases with the rate", &amqp),
    ]
}

/// Statements of a section.
#[derive(Debug, Clone, Copy)]
struct Statements(&'static str);

impl Statements {
    fn claim(self, statement: &'static str, measured: String, holds: Option<bool>) -> Claim {
        Claim { section: self.0, statement, measured, holds }
    }

    /// All means are between two bounds in seconds.
    fn within(self, statement: &'static str, of: &[&CellResult], [low, high]: [f64; 2]) -> Claim {
        self.claim(statement, means(of), all_within(of, low, high))
    }

    /// The mean at the highest rate is below that at the lowest.
    fn falling(self, statement: &'static str, of: &[&CellResult]) -> Claim {
        self.claim(statement, means(of), falls(of))
    }

    /// The means of one protocol are below those of another one at every rate.
    fn below(
        self,
        statement: &'static str,
        (low_name, low): (&str, &[&CellResult]),
        (high_name, high): (&str, &[&CellResult]),
    ) -> Claim {
        let measured = format!("{low_name} {}; {high_name} {}", means(low), means(high));
        self.claim(statement, measured, are_below(low, high))
    }
}

/// Order of the systems (Figure 10) and of MQTT and AMQP, and what Nagle's algorithm changes.
pub(super) fn order_and_confound(results: &Results<'_>) -> Vec<Claim> {
    let order = |section, statement, protocol: &str| {
        let found: Vec<_> =
            SYSTEMS.iter().filter_map(|it| results.one(it, protocol, 100, true)).collect();
        let is_sorted = found.is_sorted_by(|a, b| a.mean_s < b.mean_s);
        let holds = (found.len() == SYSTEMS.len()).then_some(is_sorted);
        Statements(section).claim(statement, format!("at 100/s: {}", means(&found)), holds)
    };
    let nagle = results.one("5g-ready", "mqtt", 100, false);
    let own = results.one("5g-ready", "mqtt", 100, true);
    let amqp = results.one("5g-ready", AMQP, 100, true);
    let gap = |it: &CellResult, amqp: &CellResult| (it.mean_s - amqp.mean_s).abs();
    let own_finding = Statements("");
    vec![
        order(
            "4.5",
            "Ethernet is faster than the 5G prototype, and the 5G prototype than the 5G-ready system (MQTT)",
            "mqtt",
        ),
        order(
            "4.5, Figure 10",
            "AMQP: Ethernet is faster than the 5G prototype, and the 5G prototype than the 5G-ready system",
            AMQP,
        ),
        mqtt_above_amqp(results),
        own_finding.claim(
            "5G-ready: Nagle's algorithm alone raises the mean latency of MQTT at 100/s by more than a half",
            format!("with {}; without {}", known(nagle), known(own)),
            nagle.zip(own).map(|(nagle, own)| nagle.mean_s > 1.5 * own.mean_s),
        ),
        own_finding.claim(
            "5G-ready: at 100/s, Nagle's algorithm at MQTT makes most of the difference between the means of MQTT and AMQP",
            format!("MQTT with {}, without {}; AMQP {}", known(nagle), known(own), known(amqp)),
            nagle
                .zip(own)
                .zip(amqp)
                .map(|((nagle, own), amqp)| gap(nagle, amqp) > 2.0 * gap(own, amqp)),
        ),
    ]
}

/// Section 4.5: MQTT has a higher mean than AMQP in most cases.
fn mqtt_above_amqp(results: &Results<'_>) -> Claim {
    let mut pairs = Vec::new();
    for cell in results.0.iter().filter(|it| it.protocol == AMQP) {
        let is_other = |it: &&Cell| {
            let key = |it: &Cell| (it.system, it.rate_per_s, it.values);
            it.protocol == "mqtt" && it.nodelay && key(it) == key(cell)
        };
        let mqtt = results.0.iter().find(is_other).and_then(|it| it.result.as_ref());
        pairs.extend(mqtt.zip(cell.result.as_ref()));
    }
    let above = pairs.iter().filter(|(mqtt, amqp)| mqtt.mean_s > amqp.mean_s).count();
    Statements("4.5").claim(
        "In most cases the mean latency of MQTT is higher than that of AMQP",
        format!("in {above} of {} cases", pairs.len()),
        (!pairs.is_empty()).then_some(2 * above > pairs.len()),
    )
}

/// Largest latencies, and losses.
pub(super) fn worst_cases(results: &Results<'_>, cells: &[Cell]) -> Vec<Claim> {
    let largest = |system: &str, protocol: &str| {
        results.rates(system, protocol).iter().map(|it| it.max_s).reduce(f64::max)
    };
    let ms =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |it| format!("{:.1} ms", it * 1e3));
    let [mqtt, amqp, sv] = ["mqtt", AMQP, "sv"].map(|it| largest("5g-ready", it));
    let [prototype, prototype_amqp] = ["mqtt", AMQP].map(|it| largest("5g-prototype", it));
    let known = cells.iter().filter_map(|it| it.result.as_ref());
    let (missing, messages) =
        known.fold((0, 0), |(lost, all), it| (lost + it.missing, all + it.messages));
    let five_times = |it: Option<f64>| it.zip(sv).map(|(it, sv)| it >= 5.0 * sv);
    let below = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a < b);
    let both = |a: (&str, Option<f64>), b: (&str, Option<f64>)| {
        format!("{} {}, {} {}", a.0, ms(a.1), b.0, ms(b.1))
    };
    let (section_4_2, section_4_3) = (Statements("4.2"), Statements("4.3"));
    vec![
        section_4_2.claim(
            "5G-ready: the largest latency of MQTT is five times that of Sampled Values",
            both(("MQTT", mqtt), ("Sampled Values", sv)),
            five_times(mqtt),
        ),
        section_4_2.claim(
            "5G-ready: the largest latency of AMQP is five times that of Sampled Values",
            both(("AMQP", amqp), ("Sampled Values", sv)),
            five_times(amqp),
        ),
        section_4_3.claim(
            "The largest latency on the 5G prototype is lower than on the 5G-ready system (MQTT)",
            both(("5G prototype", prototype), ("5G-ready", mqtt)),
            below(prototype, mqtt),
        ),
        section_4_3.claim(
            "The largest latency of AMQP is lower on the 5G prototype than on the 5G-ready system",
            both(("5G prototype", prototype_amqp), ("5G-ready", amqp)),
            below(prototype_amqp, amqp),
        ),
        Statements("4.5").claim(
            "5G-ready: the largest latency of AMQP is above that of MQTT",
            both(("AMQP", amqp), ("MQTT", mqtt)),
            below(mqtt, amqp),
        ),
        Statements("4.2, 4.5").claim(
            "No protocol loses a message without congestion",
            format!("{missing} of {messages} messages missing"),
            (messages > 0).then_some(missing == 0),
        ),
    ]
}
