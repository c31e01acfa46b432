//! Statements about the latency on each system: figures 6, 7, 8 and 10.

use super::Claim;
use super::results::{Results, all_within, are_below, falls, known, means, ratio};
use crate::command::reserve::matrix::{AMQP, Cell, CellResult, SYSTEMS};

/// Figures 6 to 8.
pub(super) fn latency(results: &Results<'_>) -> Vec<Claim> {
    let mut claims = on_ethernet(results);
    let ready = |protocol: &str| results.rates("5g-ready", protocol);
    let (sv, amqp) = (ready("sv"), ready(AMQP));
    let prototype = |protocol: &&str| results.rates("5g-prototype", protocol);
    let nr: Vec<_> = ["udp", "mqtt", AMQP].iter().flat_map(prototype).collect();
    claims.extend([
        Claim {
            section: "4.2, Figure 7",
            statement: "5G-ready: the mean latency is between 15 and 25 ms (Sampled Values, 10 values)",
            measured: means(&sv),
            holds: all_within(&sv, 15e-3, 25e-3),
        },
        Claim {
            section: "4.2, Figure 7",
            statement: "5G-ready: the mean latency of AMQP is between 15 and 25 ms (10 values)",
            measured: means(&amqp),
            holds: all_within(&amqp, 15e-3, 25e-3),
        },
        Claim {
            section: "4.2, Figure 7",
            statement: "5G-ready: the mean latency decreases with the rate (Sampled Values)",
            measured: means(&sv),
            holds: falls(&sv),
        },
        Claim {
            section: "4.2, Figure 7",
            statement: "5G-ready: the mean latency of AMQP decreases with the rate",
            measured: means(&amqp),
            holds: falls(&amqp),
        },
        Claim {
            section: "4.3, Figure 8",
            statement: "5G prototype: the mean latency in the uplink is between 2.5 and 6.5 ms",
            measured: means(&nr),
            holds: all_within(&nr, 2.5e-3, 6.5e-3),
        },
    ]);
    claims
}

/// Section 4.1 and Figure 6.
fn on_ethernet(results: &Results<'_>) -> Vec<Claim> {
    let [udp, mqtt, amqp] = ["udp", "mqtt", AMQP].map(|it| results.rates("ethernet", it));
    let beside = |a: (&str, &[&CellResult]), b: (&str, &[&CellResult])| {
        format!("{} {}; {} {}", a.0, means(a.1), b.0, means(b.1))
    };
    vec![
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: UDP has a lower mean latency than MQTT at every rate",
            measured: beside(("UDP", &udp), ("MQTT", &mqtt)),
            holds: are_below(&udp, &mqtt),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: UDP has a lower mean latency than AMQP at every rate",
            measured: beside(("UDP", &udp), ("AMQP", &amqp)),
            holds: are_below(&udp, &amqp),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: MQTT has the highest mean latency, above AMQP at every rate",
            measured: beside(("MQTT", &mqtt), ("AMQP", &amqp)),
            holds: are_below(&amqp, &mqtt),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: mean latencies are at most 0.9 ms",
            measured: beside(("UDP", &udp), ("MQTT", &mqtt)),
            holds: all_within(&[&udp[..], &mqtt[..]].concat(), 0.0, 0.9e-3),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: the mean latency of AMQP is between 0.3 and 0.45 ms",
            measured: means(&amqp),
            holds: all_within(&amqp, 0.3e-3, 0.45e-3),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: the latency of UDP does not depend on the rate (ratio of means at most 1.5)",
            measured: means(&udp),
            holds: ratio(&udp).map(|ratio| ratio <= 1.5),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: the latency of MQTT decreases with the rate",
            measured: means(&mqtt),
            holds: falls(&mqtt),
        },
        Claim {
            section: "4.1, Figure 6",
            statement: "Ethernet: the latency of AMQP decreases with the rate",
            measured: means(&amqp),
            holds: falls(&amqp),
        },
    ]
}

/// Order of the systems (Figure 10) and of MQTT and AMQP, and what Nagle's algorithm changes.
pub(super) fn order_and_confound(results: &Results<'_>) -> Vec<Claim> {
    let order = |section, statement, protocol: &str| {
        let found: Vec<_> =
            SYSTEMS.iter().filter_map(|it| results.one(it, protocol, 100, true)).collect();
        Claim {
            section,
            statement,
            measured: format!("at 100/s: {}", means(&found)),
            holds: (found.len() == SYSTEMS.len())
                .then(|| found.is_sorted_by(|a, b| a.mean_s < b.mean_s)),
        }
    };
    let nagle = results.one("5g-ready", "mqtt", 100, false);
    let own = results.one("5g-ready", "mqtt", 100, true);
    let amqp = results.one("5g-ready", AMQP, 100, true);
    let gap = |it: &CellResult, amqp: &CellResult| (it.mean_s - amqp.mean_s).abs();
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
        Claim {
            section: "",
            statement: "5G-ready: Nagle's algorithm alone raises the mean latency of MQTT at 100/s by more than a half",
            measured: format!("with {}; without {}", known(nagle), known(own)),
            holds: nagle.zip(own).map(|(nagle, own)| nagle.mean_s > 1.5 * own.mean_s),
        },
        Claim {
            section: "",
            statement: "5G-ready: at 100/s, Nagle's algorithm at MQTT makes most of the difference between the means of MQTT and AMQP",
            measured: format!(
                "MQTT with {}, without {}; AMQP {}",
                known(nagle),
                known(own),
                known(amqp)
            ),
            holds: nagle
                .zip(own)
                .zip(amqp)
                .map(|((nagle, own), amqp)| gap(nagle, amqp) > 2.0 * gap(own, amqp)),
        },
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
    Claim {
        section: "4.5",
        statement: "In most cases the mean latency of MQTT is higher than that of AMQP",
        measured: format!("in {above} of {} cases", pairs.len()),
        holds: (!pairs.is_empty()).then_some(2 * above > pairs.len()),
    }
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
    vec![
        Claim {
            section: "4.2",
            statement: "5G-ready: the largest latency of MQTT is five times that of Sampled Values",
            measured: format!("MQTT {}, Sampled Values {}", ms(mqtt), ms(sv)),
            holds: five_times(mqtt),
        },
        Claim {
            section: "4.2",
            statement: "5G-ready: the largest latency of AMQP is five times that of Sampled Values",
            measured: format!("AMQP {}, Sampled Values {}", ms(amqp), ms(sv)),
            holds: five_times(amqp),
        },
        Claim {
            section: "4.3",
            statement: "The largest latency on the 5G prototype is lower than on the 5G-ready system (MQTT)",
            measured: format!("{} and {}", ms(prototype), ms(mqtt)),
            holds: below(prototype, mqtt),
        },
        Claim {
            section: "4.3",
            statement: "The largest latency of AMQP is lower on the 5G prototype than on the 5G-ready system",
            measured: format!("{} and {}", ms(prototype_amqp), ms(amqp)),
            holds: below(prototype_amqp, amqp),
        },
        Claim {
            section: "4.5",
            statement: "5G-ready: the largest latency of AMQP is above that of MQTT",
            measured: format!("AMQP {}, MQTT {}", ms(amqp), ms(mqtt)),
            holds: below(mqtt, amqp),
        },
        Claim {
            section: "4.2, 4.5",
            statement: "No protocol loses a message without congestion",
            measured: format!("{missing} of {messages} messages missing"),
            holds: (messages > 0).then_some(missing == 0),
        },
    ]
}
