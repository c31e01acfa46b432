//! Statements about latency, losses and congestion: sections 4.1 to 4.3 and 4.5.

use gridhaul_protocols::corruption::{Checksum, ErrorPattern, below_checksums};
use gridhaul_report::verdict::Verdict;

use super::comparisons::{
    below, compared, decreases, decreases_at_each_rate, greatest_within, grows, invariant, not,
    side_by_side, similar, together, within,
};
use super::estimate::{DEVIATION, Estimate, MAX, MEAN, all, both, certain, most};
use super::{AMQP, Cell, CellKey, Finding, Results, Variant, name, texts};
use crate::experiment::cells::CellResult;
use crate::experiment::reserve::plan::{PROTOCOLS, SYSTEMS};

/// The protocols of Figures 6 and 8.
const FIGURE_8: [&str; 3] = ["udp", "mqtt", AMQP];

/// Share of the packets on the congested uplink of test 2b that exceeds its capacity: 21 Mbit/s of
/// cross traffic on 20 Mbit/s. A full queue loses this share of all packets.
const EXCESS: f64 = 1.0 / 21.0;

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
        "ethernet-amqp-decreases" => decreases_at_each_rate(&means(AMQP)),
        "ethernet-mqtt-decreases" => decreases(&means("mqtt")),
        "ethernet-range" => within(&FIGURE_8.map(means).concat(), [0.1e-3, 0.9e-3]),
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
        "ready-worst-range" => within(&[largest("mqtt"), largest(AMQP)].concat(), [25e-3, 400e-3]),
        "ready-15-to-20" => {
            within(&["sv", AMQP].map(|protocol| ready(protocol, MEAN)).concat(), [15e-3, 20e-3])
        }
        "amqp-worst-above-mqtt" => below(&("mqtt", largest("mqtt")), &(AMQP, largest(AMQP))),
        "prototype-uplink-range" => within(&prototype(results, Variant::Uplink), [2.5e-3, 6.5e-3]),
        "prototype-downlink-range" => {
            within(&prototype(results, Variant::Downlink), [1.5e-3, 7e-3])
        }
        "prototype-range" => within(&both_directions(results), [1.5e-3, 11e-3]),
        "prototype-5-to-10" => within(&both_directions(results), [5e-3, 10e-3]),
        "prototype-variance-grows" => {
            let finding = |protocol| grows(&results.uplink("5g-prototype", protocol, DEVIATION));
            together(&FIGURE_8.map(|protocol| (protocol, finding(protocol))))
        }
        _ => return None,
    })
}

/// The means on the 5G prototype of the protocols of Figure 8, at all rates.
fn prototype(results: &Results<'_>, variant: Variant) -> Vec<Option<Estimate>> {
    let key = |protocol| CellKey::uplink("5g-prototype", protocol, 0).with(variant);
    FIGURE_8.map(|protocol| results.rates(key(protocol), MEAN)).concat()
}

/// The same in the uplink and in the downlink.
fn both_directions(results: &Results<'_>) -> Vec<Option<Estimate>> {
    [Variant::Uplink, Variant::Downlink].map(|variant| prototype(results, variant)).concat()
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
        "amqp-worst-380-and-33" => {
            let largest = |system| results.uplink(system, AMQP, MAX);
            let range = |printed: f64| [0.75 * printed, 1.25 * printed];
            together(&[
                ("5G-ready", greatest_within(&largest("5g-ready"), range(380e-3))),
                ("5G prototype", greatest_within(&largest("5g-prototype"), range(33e-3))),
            ])
        }
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
            nothing_missing(&results.cells.iter().filter(matrix).collect::<Vec<_>>())
        }
        "sv-loses-above-1000" => {
            let fast = |cell: &&Cell| cell.key.protocol == "sv" && cell.key.rate_per_s > 1_000;
            let (count, about) = missing(results.cells.iter().filter(fast));
            (certain(count.map(|[lost, _]| lost > 0)), about)
        }
        "congestion-udp-loses" => {
            let (count, about) = above("udp");
            (certain(count.map(|[lost, all]| lost as f64 >= EXCESS * all as f64)), about)
        }
        "congestion-mqtt-loses-nothing" => {
            let (count, about) = above("mqtt");
            (certain(count.map(|[lost, _]| lost == 0)), about)
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

/// Messages that are missing, and all, in the repetitions that the machine has not disturbed, and a
/// text; `None` without a measurement.
fn missing<'a>(cells: impl Iterator<Item = &'a Cell>) -> (Option<[u64; 2]>, String) {
    let [lost, all] = count_missing(cells.flat_map(Cell::valid));
    ((all > 0).then_some([lost, all]), format!("{lost} of {all} messages missing"))
}

/// No message is missing in any measurement. A repetition that the machine has disturbed counts as
/// well if it has lost nothing; a loss in it may be one of the machine, and decides nothing.
fn nothing_missing(cells: &[&Cell]) -> Finding {
    let [lost, valid] = count_missing(cells.iter().flat_map(|cell| cell.valid()));
    let [any_lost, all] = count_missing(cells.iter().flat_map(|cell| &cell.repetitions));
    let is_complete = cells.iter().all(|cell| !cell.repetitions.is_empty());
    let verdict = match (lost, any_lost) {
        _ if all == 0 => Verdict::Unknown,
        (0, 0) if is_complete => Verdict::Agrees,
        (0, _) => Verdict::Undecided,
        _ => Verdict::Differs,
    };
    let (disturbed_lost, disturbed) = (any_lost - lost, all - valid);
    let about = format!(
        "{lost} of {valid} messages missing, and {disturbed_lost} of {disturbed} where the machine \
         disturbed a repetition"
    );
    (verdict, about)
}

/// Messages of these repetitions that are missing, and all.
fn count_missing<'a>(repetitions: impl Iterator<Item = &'a CellResult>) -> [u64; 2] {
    repetitions.fold([0, 0], |[lost, all], result| [lost + result.missing, all + result.messages])
}

/// The mean of UDP is below those of all other protocols, on each system at each rate.
fn udp_fastest(results: &Results<'_>) -> Finding {
    let mut verdicts = Vec::new();
    let mut slower = Vec::new();
    for system in SYSTEMS {
        let udp = results.uplink(system, "udp", MEAN);
        for other in PROTOCOLS.into_iter().filter(|protocol| *protocol != "udp") {
            for (udp, of_other) in udp.iter().zip(results.uplink(system, other, MEAN)) {
                // A comparison that is due counts also where too few repetitions are valid.
                let Some((udp, of_other)) = udp.zip(of_other) else {
                    verdicts.push(Verdict::Undecided);
                    continue;
                };
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

/// The means of a protocol increase from Ethernet to the prototype to 5G-ready at every rate.
fn order(results: &Results<'_>, protocol: &'static str) -> Finding {
    let means = SYSTEMS.map(|system| results.uplink(system, protocol, MEAN));
    let verdicts = means.windows(2).map(|pair| compared(&pair[0], &pair[1], Estimate::is_below));
    (all(verdicts), means.map(|means| texts(&means)).join("; "))
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
