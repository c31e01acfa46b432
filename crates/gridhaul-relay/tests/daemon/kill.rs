//! kill -9 of collector and head at random times: nothing that was reported as stored is lost, and no record is
//! delivered twice. `GRIDHAUL_KILL_CYCLES` sets the number of kills.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger;
use crate::meters::{Meters, Notes, message};
use crate::relays::{Relays, Role};

const METERS: u64 = 16;

/// Age of data of which most must be durable.
const OLD: Duration = Duration::from_millis(100);

/// Pseudo-random numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Durable bytes that the collector reports for its open meters, by epoch and number.
fn durable(relays: &Relays) -> Option<BTreeMap<(String, u64), u64>> {
    let answer = relays.ask(Role::Collector, "/meters")?;
    let epoch = answer["epoch"].as_str()?.to_owned();
    let meters = answer["meters"].as_array()?.iter();
    Some(
        meters
            .filter_map(|meter| {
                Some(((epoch.clone(), meter["meter"].as_u64()?), meter["durable_byte"].as_u64()?))
            })
            .collect(),
    )
}

/// Bytes of open connections that were sent some time ago.
fn sent_before(notes: &Notes, time: Instant) -> u64 {
    let open = notes.open.lock().unwrap();
    open.values()
        .filter_map(|sent| sent.iter().rev().find(|(at, _)| *at < time).map(|(_, bytes)| bytes))
        .sum()
}

fn cycles() -> u64 {
    std::env::var("GRIDHAUL_KILL_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

fn kill_repeatedly(tier: &str) {
    let mut relays = Relays::new(tier, "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meters = Meters::start(relays.meters, METERS);
    let mut random = Random(7);
    let mut reported: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let (mut old_bytes, mut old_durable) = (0, 0);
    for _ in 0..cycles() {
        thread::sleep(Duration::from_millis(150 + random.next(350)));
        let old = sent_before(&meters.notes, Instant::now() - OLD);
        if let Some(now) = durable(&relays) {
            old_durable += now.values().sum::<u64>().min(old);
            old_bytes += old;
            reported.extend(now);
        }
        let roles: &[Role] = match random.next(4) {
            0 | 1 => &[Role::Collector],
            2 => &[Role::Head],
            _ => &[Role::Collector, Role::Head],
        };
        roles.iter().for_each(|role| relays.kill(*role));
        roles.iter().rev().for_each(|role| relays.start(*role));
    }
    thread::sleep(Duration::from_millis(300));
    let notes = meters.stop();
    relays.wait_until_delivered();
    relays.kill(Role::Collector);
    relays.kill(Role::Head);
    let lost = check(&relays, &reported, &notes);
    let share = 100.0 * old_durable as f64 / old_bytes.max(1) as f64;
    eprintln!(
        "tier {tier}: {} kills; {} streams confirmed by FIN, {} observed; reported-durable bytes lost: {lost}; \
         durable at the kill, of bytes older than 100 ms: {share:.1} %",
        cycles(),
        notes.confirmed.lock().unwrap().len(),
        reported.len(),
    );
    assert_eq!(lost, 0);
    assert!(share >= 90.0, "{share} %");
}

/// Bytes that were reported as stored and not delivered.
fn check(relays: &Relays, reported: &BTreeMap<(String, u64), u64>, notes: &Notes) -> u64 {
    let delivered = ledger::read(&relays.messages());
    let mut lost = 0;
    for (meter, durable) in reported {
        let length = delivered.get(meter).map_or(0, |meter| meter.text.len() as u64);
        lost += durable.saturating_sub(length);
    }
    let confirmed = notes.confirmed.lock().unwrap();
    assert!(confirmed.len() > 3, "few streams were confirmed: {}", confirmed.len());
    let mut complete = BTreeMap::new();
    for meter in delivered.values() {
        let stream = meter.text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        let Some(stream) = stream else { continue };
        for (number, line) in (0..).zip(meter.text.split_inclusive('\n')) {
            let expected = message(stream, number);
            assert!(
                expected.starts_with(line),
                "stream {stream}: {line:?} instead of {expected:?}"
            );
        }
        if meter.is_ended {
            complete.insert(stream, meter.text.len() as u64);
        }
    }
    for (stream, length) in confirmed.iter() {
        lost += length - complete.get(stream).copied().unwrap_or(0).min(*length);
    }
    lost
}

#[test]
fn nothing_stored_is_lost_by_kill_local() {
    kill_repeatedly("local");
}

#[test]
fn nothing_stored_is_lost_by_kill_server() {
    kill_repeatedly("server");
}
