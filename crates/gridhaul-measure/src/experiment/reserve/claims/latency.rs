//! Statements about latency, losses and congestion: sections 4.1 to 4.3 and 4.5.

use gridhaul_protocols::corruption::{Checksum, ErrorPattern, below_checksums};
use gridhaul_report::verdict::Verdict;

use super::estimate::{DEVIATION, Estimate, MAX, MEAN, all, both, certain, most};
use super::{AMQP, Cell, CellKey, Finding, Results, Variant, name, texts};
use crate::experiment::reserve::plan::{PROTOCOLS, SYSTEMS};

/// Estimates with the name of a protocol or of a system.
type Labelled = (&'static str, Vec<Option<Estimate>>);

/// The protocols of Figure 8.
const FIGURE_8: [&str; 3] = ["udp", "mqtt", AMQP];

/// The verdict of a statement; `None` for a name of another part.
pub(super) fn find(claim: &str, results: &Results<'_>) -> Option<Finding> {
    on_ethernet(claim, results)
        .or_else(|| on_radio(claim, results))
        .or_else(|| between_systems(claim, results))
        .or_else(|| losses(claim, results))
}

/// Section 4.1 and Figure 6.
fn on_ethernet(claim: &str, results: &Results<'_>) -> Option<Finding> {
    let means = |protocol| results.uplink("ethernet", protocol, MEAN);
    Some(match claim {
        "ethernet-udp-below-mqtt" => below(&("udp", means("udp")), &("mqtt", means("mqtt"))),
        "ethernet-udp-below-amqp" => below(&("udp", means("udp")), &(AMQP, means(AMQP))),
        "ethernet-mqtt-highest" => below(&(AMQP, means(AMQP)), &("mqtt", means("mqtt"))),
        "udp-fastest-on-every-system" => udp_fastest(results),
        "ethernet-udp-invariant" => invariant(&means("udp"), 1.5),
        "ethernet-amqp-range" => within(&means(AMQP), [0.3e-3, 0.45e-3]),
        "ethernet-mqtt-range" => within(&means("mqtt"), [0.5e-3, 0.9e-3]),
        "ethernet-amqp-decreases" => decreases(&means(AMQP)),
        "ethernet-mqtt-decreases" => decreases(&means("mqtt")),
        _ => return None,
    })
}

/// Sections 4.2 and 4.3 on one system.
fn on_radio(claim: &str, results: &Results<'_>) -> Option<Finding> {
    let ready = |protocol, quantity| results.uplink("5g-ready", protocol, quantity);
    let largest = |protocol| ready(protocol, MAX);
    let five_times = |protocol| {
        let (sv, other) = (("sv", largest("sv")), (protocol, largest(protocol)));
        let is_multiple = |sv: Estimate, other: Estimate| not(other.is_below(sv.times(5.0)));
        (compared(&sv.1, &other.1, is_multiple), side_by_side(&sv, &other))
    };
    Some(match claim {
        "ready-sv-range" => within(&ready("sv", MEAN), [15e-3, 25e-3]),
        "ready-amqp-range" => within(&ready(AMQP, MEAN), [15e-3, 25e-3]),
        "ready-sv-decreases" => decreases(&ready("sv", MEAN)),
        "ready-amqp-decreases" => decreases(&ready(AMQP, MEAN)),
        "ready-sv-variance-grows" => grows(&ready("sv", DEVIATION)),
        "ready-amqp-variance-grows" => grows(&ready(AMQP, DEVIATION)),
        "ready-mqtt-worst-five-times-sv" => five_times("mqtt"),
        "ready-amqp-worst-five-times-sv" => five_times(AMQP),
        "ready-worst-range" => within(&[largest("sv"), largest(AMQP)].concat(), [10e-3, 400e-3]),
        "amqp-worst-above-mqtt" => below(&("mqtt", largest("mqtt")), &(AMQP, largest(AMQP))),
        "prototype-uplink-range" => {
            let means = |protocol| results.uplink("5g-prototype", protocol, MEAN);
            within(&FIGURE_8.map(means).concat(), [2.5e-3, 6.5e-3])
        }
        "prototype-downlink-range" => {
            let key = |protocol| CellKey::uplink("5g-prototype", protocol, 0);
            let means = |protocol| results.rates(key(protocol).with(Variant::Downlink), MEAN);
            within(&FIGURE_8.map(means).concat(), [1.5e-3, 7e-3])
        }
        "prototype-variance-grows" => {
            let finding = |protocol| grows(&results.uplink("5g-prototype", protocol, DEVIATION));
            together(&FIGURE_8.map(|protocol| (protocol, finding(protocol))))
        }
        _ => return None,
    })
}

/// Comparisons of systems, and of MQTT and AMQP.
fn between_systems(claim: &str, results: &Results<'_>) -> Option<Finding> {
    Some(match claim {
        "prototype-worst-below-ready" => together(&["mqtt", AMQP].map(|protocol| {
            let largest = |system| results.uplink(system, protocol, MAX);
            (
                protocol,
                below(
                    &("5G prototype", largest("5g-prototype")),
                    &("5G-ready", largest("5g-ready")),
                ),
            )
        })),
        "prototype-worst-like-ethernet" => together(&FIGURE_8.map(|protocol| {
            let largest = |system| results.uplink(system, protocol, MAX);
            (
                protocol,
                similar(
                    &("Ethernet", largest("ethernet")),
                    &("5G prototype", largest("5g-prototype")),
                ),
            )
        })),
        "order-of-systems-mqtt" => order(results, "mqtt"),
        "order-of-systems-amqp" => order(results, AMQP),
        "mqtt-above-amqp-in-most-cases" => mqtt_above_amqp(results),
        "nagle-raises-mqtt" => {
            let [nagle, without] = mqtt_at_100(results);
            let verdict =
                nagle.zip(without).map(|(nagle, without)| without.times(1.5).is_below(nagle));
            let about = format!("with {}; without {}", texts(&[nagle]), texts(&[without]));
            (verdict.unwrap_or(Verdict::Undecided), about)
        }
        "nagle-makes-the-difference" => {
            let [nagle, without] = mqtt_at_100(results);
            let amqp = results.one(CellKey::uplink("5g-ready", AMQP, 100), MEAN);
            let verdict = nagle.zip(without).zip(amqp).map(|((nagle, without), amqp)| {
                both(amqp.is_below(nagle), not(amqp.times(1.1).is_below(without)))
            });
            let mqtt = ("MQTT with and without", vec![nagle, without]);
            let about = side_by_side(&("AMQP", vec![amqp]), &mqtt);
            (verdict.unwrap_or(Verdict::Undecided), about)
        }
        _ => return None,
    })
}

/// Losses, with and without congestion, and what congestion does to the latency.
fn losses(claim: &str, results: &Results<'_>) -> Option<Finding> {
    let loaded = |protocol, variant| CellKey::uplink("5g-ready", protocol, 100).with(variant);
    let above = |protocol| {
        let key = loaded(protocol, Variant::AboveCapacity);
        missing(results.cells.iter().filter(|cell| cell.key == key))
    };
    Some(match claim {
        "nothing-lost" => {
            let matrix = |cell: &&Cell| {
                let is_loaded =
                    matches!(cell.key.variant, Variant::BelowCapacity | Variant::AboveCapacity);
                !is_loaded && cell.key.rate_per_s <= 1_000
            };
            let (count, about) = missing(results.cells.iter().filter(matrix));
            (certain(count.map(|count| count == 0)), about)
        }
        "sv-loses-above-1000" => {
            let fast = |cell: &&Cell| cell.key.protocol == "sv" && cell.key.rate_per_s > 1_000;
            let (count, about) = missing(results.cells.iter().filter(fast));
            (certain(count.map(|count| count > 0)), about)
        }
        "congestion-udp-loses" => {
            let (count, about) = above("udp");
            (certain(count.map(|count| count > 0)), about)
        }
        "congestion-mqtt-loses-nothing" => {
            let (count, about) = above("mqtt");
            (certain(count.map(|count| count == 0)), about)
        }
        "congestion-raises-latency" => together(&["udp", "mqtt"].map(|protocol| {
            let free = results.one(CellKey::uplink("5g-ready", protocol, 100), MEAN);
            let congested = results.one(loaded(protocol, Variant::BelowCapacity), MEAN);
            (protocol, below(&("without", vec![free]), &("with", vec![congested])))
        })),
        "corruption-is-detected" => corruption(),
        _ => return None,
    })
}

/// Every error of each kind in a frame of 80 B, without measurements.
fn corruption() -> Finding {
    let fates = ErrorPattern::ALL
        .map(|pattern| below_checksums(Checksum::FrameCheckSequence, 80, pattern, 1));
    let wrong: u64 = fates.iter().map(|counts| counts.silently_wrong).sum();
    let all: u64 = fates.iter().map(|counts| counts.total()).sum();
    (certain(Some(wrong == 0)), format!("{wrong} of {all} errors not detected"))
}

/// Messages that are missing, and a text; `None` without a measurement.
fn missing<'a>(cells: impl Iterator<Item = &'a Cell>) -> (Option<u64>, String) {
    let results = cells.flat_map(Cell::valid);
    let (lost, all) =
        results.fold((0, 0), |(lost, all), result| (lost + result.missing, all + result.messages));
    ((all > 0).then_some(lost), format!("{lost} of {all} messages missing"))
}

/// The mean of UDP is below those of all other protocols, on each system at each rate.
fn udp_fastest(results: &Results<'_>) -> Finding {
    let mut verdicts = Vec::new();
    let mut slower = Vec::new();
    for system in SYSTEMS {
        let udp = results.uplink(system, "udp", MEAN);
        for other in PROTOCOLS.into_iter().filter(|protocol| *protocol != "udp") {
            for (udp, of_other) in pairs(&udp, &results.uplink(system, other, MEAN)) {
                let verdict = udp.is_below(of_other);
                if verdict == Verdict::Differs {
                    let (other, udp, of_other) = (name(other), udp.text(), of_other.text());
                    slower.push(format!("{system}: UDP {udp}, {other} {of_other} ms"));
                }
                verdicts.push(verdict);
            }
        }
    }
    let holds = verdicts.iter().filter(|verdict| **verdict == Verdict::Agrees).count();
    let (verdict, count) = (all(verdicts.iter().copied()), verdicts.len());
    let about = format!("faster in {holds} of {count} comparisons");
    let about = std::iter::once(about).chain(slower.into_iter().take(1)).collect::<Vec<_>>();
    (verdict, about.join("; "))
}

/// The means of MQTT on 5G-ready at 100/s, with Nagle's algorithm and without.
fn mqtt_at_100(results: &Results<'_>) -> [Option<Estimate>; 2] {
    let key = CellKey::uplink("5g-ready", "mqtt", 100);
    [key.with(Variant::Nagle), key].map(|key| results.one(key, MEAN))
}

/// The means of a protocol increase from Ethernet to the prototype to 5G-ready at 100/s.
fn order(results: &Results<'_>, protocol: &'static str) -> Finding {
    let means = SYSTEMS.map(|system| results.one(CellKey::uplink(system, protocol, 100), MEAN));
    let verdicts = means.windows(2).map(|pair| match pair {
        [Some(lower), Some(higher)] => lower.is_below(*higher),
        _ => Verdict::Undecided,
    });
    (all(verdicts), format!("at 100/s {}", texts(&means)))
}

/// The mean of MQTT is above that of AMQP in most measurements with the same settings.
fn mqtt_above_amqp(results: &Results<'_>) -> Finding {
    let amqp = results.cells.iter().filter(|cell| cell.key.protocol == AMQP);
    let verdicts: Vec<_> = amqp
        .map(|cell| {
            let mqtt = results.one(CellKey { protocol: "mqtt", ..cell.key }, MEAN);
            let both = results.one(cell.key, MEAN).zip(mqtt);
            both.map_or(Verdict::Undecided, |(amqp, mqtt)| amqp.is_below(mqtt))
        })
        .collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (above, below) = (count(Verdict::Agrees), count(Verdict::Differs));
    let cases = verdicts.len();
    (most(&verdicts), format!("above in {above}, below in {below} of {cases} cases"))
}

/// Pairs of estimates of which both are known.
fn pairs<'a>(
    left: &'a [Option<Estimate>],
    right: &'a [Option<Estimate>],
) -> impl Iterator<Item = (Estimate, Estimate)> + 'a {
    left.iter().zip(right).filter_map(|(left, right)| left.zip(*right))
}

/// Pairs of estimates, with a verdict that is open where one of both is missing.
fn compared(
    left: &[Option<Estimate>],
    right: &[Option<Estimate>],
    compare: impl Fn(Estimate, Estimate) -> Verdict,
) -> Verdict {
    // A series that was measured at other rates than the other one is not comparable.
    if left.len() != right.len() {
        return Verdict::Unknown;
    }
    let verdict = |(left, right): (&Option<Estimate>, &Option<Estimate>)| {
        left.zip(*right).map_or(Verdict::Undecided, |(left, right)| compare(left, right))
    };
    all(left.iter().zip(right).map(verdict))
}

fn side_by_side(left: &Labelled, right: &Labelled) -> String {
    format!("{} {}; {} {}", name(left.0), texts(&left.1), name(right.0), texts(&right.1))
}

/// Each estimate is below the other one at the same rate.
fn below(left: &Labelled, right: &Labelled) -> Finding {
    let about = side_by_side(left, right);
    (compared(&left.1, &right.1, Estimate::is_below), about)
}

/// Each estimate is between half and twice the other one.
fn similar(left: &Labelled, right: &Labelled) -> Finding {
    let about = side_by_side(left, right);
    let is_similar = |left: Estimate, right: Estimate| {
        both(not(left.times(2.0).is_below(right)), not(right.times(2.0).is_below(left)))
    };
    (compared(&left.1, &right.1, is_similar), about)
}

fn within(estimates: &[Option<Estimate>], range: [f64; 2]) -> Finding {
    let verdict = |estimate: &Option<Estimate>| {
        estimate.map_or(Verdict::Undecided, |estimate| estimate.is_within(range))
    };
    (all(estimates.iter().map(verdict)), texts(estimates))
}

/// The estimate at the highest rate is below that at the lowest.
fn decreases(estimates: &[Option<Estimate>]) -> Finding {
    let verdict = match estimates {
        [] => Verdict::Unknown,
        [Some(first), .., Some(last)] => last.is_below(*first),
        _ => Verdict::Undecided,
    };
    (verdict, texts(estimates))
}

/// The estimate at the highest rate is above all others.
fn grows(estimates: &[Option<Estimate>]) -> Finding {
    let verdict = match estimates.split_last() {
        None => Verdict::Unknown,
        Some((Some(last), others)) => all(others.iter().map(|estimate| {
            estimate.map_or(Verdict::Undecided, |estimate| estimate.is_below(*last))
        })),
        _ => Verdict::Undecided,
    };
    (verdict, format!("standard deviations {}", texts(estimates)))
}

/// The largest estimate is at most the least one multiplied by a factor.
fn invariant(estimates: &[Option<Estimate>], factor: f64) -> Finding {
    let known: Option<Vec<_>> = estimates.iter().copied().collect();
    let verdict = known.filter(|known| !known.is_empty()).map(|known| {
        let of_pair =
            |one: &Estimate| all(known.iter().map(|other| not(other.times(factor).is_below(*one))));
        all(known.iter().map(of_pair))
    });
    (verdict.unwrap_or(Verdict::Undecided), texts(estimates))
}

const fn not(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Agrees => Verdict::Differs,
        Verdict::Differs => Verdict::Agrees,
        other => other,
    }
}

/// The findings of several protocols.
fn together<const N: usize>(findings: &[(&str, Finding); N]) -> Finding {
    let about =
        findings.iter().map(|(protocol, (_, about))| format!("{}: {about}", name(protocol)));
    let about = about.collect::<Vec<_>>().join(" | ");
    (all(findings.iter().map(|(_, (verdict, _))| *verdict)), about)
}
