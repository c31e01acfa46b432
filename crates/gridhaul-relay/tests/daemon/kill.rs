//! kill -9 of collector and head at random times: nothing that was reported as stored is lost, and no record is
//! delivered twice. `GRIDHAUL_KILL_CYCLES` sets the number of kills.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger;
use crate::meters::{Meters, Notes, message};
use crate::relays::{Relays, Role};

const METERS: u64 = 16;

/// Kills for each tier in the tests of a change.
const DEFAULT_CYCLES: u64 = 15;

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
    std::env::var("GRIDHAUL_KILL_CYCLES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_CYCLES)
}

fn kill_repeatedly(tier: &str) {
    let mut relays = Relays::new(tier, "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meters = Meters::start(relays.meters, METERS);
    let mut random = Random(7);
    let mut reported: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let (mut old_bytes, mut old_durable) = (0, 0);
    for cycle in 0..cycles() {
        // Data can be durable at the head only while the relays are connected. Every second kill comes at any time.
        let is_connected = tier == "local" || cycle.is_multiple_of(2);
        if is_connected {
            relays.wait_until("the shards are connected", |relays| {
                let status = relays.ask(Role::Collector, "/status");
                tier == "local" || status.is_some_and(|it| it["upstreams_connected_count"] == 2)
            });
            thread::sleep(Duration::from_millis(200));
        }
        thread::sleep(Duration::from_millis(100 + random.next(300)));
        let old = sent_before(&meters.notes, Instant::now() - OLD);
        if let Some(now) = durable(&relays) {
            if is_connected {
                old_durable += now.values().sum::<u64>().min(old);
                old_bytes += old;
            }
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
    // Durability takes two times fdatasync, which a machine with other work may delay.
    let least = if cycles() > DEFAULT_CYCLES { 90.0 } else { 20.0 };
    assert!(share >= least, "{share} %");
}

/// Bytes that were reported as stored and not delivered.
fn check(relays: &Relays, reported: &BTreeMap<(String, u64), u64>, notes: &Notes) -> u64 {
    let mut streams: BTreeMap<ledger::Key, u64> = BTreeMap::new();
    let delivered = ledger::read(&relays.messages(), |key, offset, text| {
        // The first piece is long enough to have the number of the stream.
        let first = || text.split(' ').next().unwrap().parse().unwrap();
        let stream = *streams.entry(key.clone()).or_insert_with(first);
        let number = offset / message(0, 0).len() as u64;
        let start = (offset % message(0, 0).len() as u64) as usize;
        let expected = &message(stream, number)[start..];
        assert!(expected.starts_with(text), "stream {stream}: {text:?} instead of {expected:?}");
    });
    let mut lost = 0;
    for (meter, durable) in reported {
        let length = delivered.get(meter).map_or(0, |meter| meter.length);
        lost += durable.saturating_sub(length);
    }
    let confirmed = notes.confirmed.lock().unwrap();
    assert!(confirmed.len() > 3, "few streams were confirmed: {}", confirmed.len());
    let ended = delivered.iter().filter(|(_, meter)| meter.is_ended);
    let complete: BTreeMap<u64, u64> =
        ended.filter_map(|(key, meter)| Some((*streams.get(key)?, meter.length))).collect();
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
