//! kill -9 of collector and head at random times: nothing that was reported as stored is lost, and
//! no record is delivered twice. `GRIDHAUL_KILL_CYCLES` sets the number of kills.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger;
use crate::machine::Machine;
use crate::meters::{Meters, Notes, message};
use crate::relays::{Relays, Role};

const METERS: u64 = 16;

/// Kills for each tier in the tests of a change.
const DEFAULT_CYCLES: u64 = 15;

/// A test continues with up to so many times the kills, until the old bytes are sufficient.
const EXTENSION: u64 = 3;

/// Old bytes that decide, for each kill that is asked for: ten messages of each meter.
const SUFFICIENT_BYTES: u64 = 10 * METERS * 200;

/// The pause before a kill is extended by the delay of the machine, but not by more than this.
const PAUSE_EXTENSION_MAX: Duration = Duration::from_secs(2);

/// Age of data of which most must be durable. The delay by which the machine has held up the relays
/// since their start is added to it: the longest of a sleep and a synchronisation of a file, of the
/// answer to the question for durable bytes, and of the time for which both relays have waited for
/// a processor; and [`RECONNECTION`].
const OLD: Duration = Duration::from_millis(100);

/// A collector connects to a head again after at most 1.4 times its absence
/// (`runtime/connector/backoff.rs`), of which the start of a head on a busy machine is a large
/// part: this share of the start is added to the delay of the machine.
const RECONNECTION: f64 = 0.4;

/// Pseudo-random numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Report of the collector for its open meters.
struct Reported {
    /// Durable bytes, by epoch and number.
    by_meter: BTreeMap<ledger::Key, u64>,
    /// The same, by address of the meter.
    by_address: BTreeMap<String, u64>,
}

fn durable(relays: &Relays) -> Option<Reported> {
    let answer = relays.ask(Role::Collector, "/details")?;
    let epoch = answer["epoch"].as_str()?;
    let mut reported = Reported { by_meter: BTreeMap::new(), by_address: BTreeMap::new() };
    for meter in answer["meters"].as_array()? {
        let durable = meter["durable_byte"].as_u64()?;
        reported.by_meter.insert((epoch.to_owned(), meter["meter"].as_u64()?), durable);
        if let Some(peer) = meter["peer"].as_str() {
            reported.by_address.insert(peer.to_owned(), durable);
        }
    }
    Some(reported)
}

/// Bytes that were old at a kill, and how many of them were durable then.
#[derive(Debug, Default)]
struct Share {
    old: u64,
    durable: u64,
}

impl Share {
    /// Whether the old bytes are enough for so many kills.
    const fn is_sufficient(&self, kills: u64) -> bool {
        self.old >= kills * SUFFICIENT_BYTES
    }

    /// Whether 90 % of the old bytes were durable.
    fn is_durable(&self) -> bool {
        self.percent() >= 90.0
    }

    fn percent(&self) -> f64 {
        100.0 * self.durable as f64 / self.old.max(1) as f64
    }
}

/// Bytes of each stream that were durable at an earlier kill: they do not count again.
#[derive(Debug, Default)]
struct Counted(BTreeMap<u64, u64>);

impl Counted {
    /// Old bytes since the last kill, and how many of them are durable.
    fn add(
        &mut self,
        notes: &Notes,
        streams: &[(u64, String, u64)],
        durable: &BTreeMap<String, u64>,
    ) -> (u64, u64) {
        let (mut all, mut stored) = (0, 0);
        for (stream, address, bytes) in streams {
            let before = self.0.get(stream).copied().unwrap_or(0);
            let now = match durable.get(address) {
                Some(now) => (*now).min(*bytes),
                // The stream has ended with FIN, so that the collector does not list it any more.
                None if !notes.open.lock().unwrap().contains_key(stream) => continue,
                // The connection was not accepted yet.
                None => 0,
            };
            all += bytes.saturating_sub(before);
            stored += now.saturating_sub(before);
            self.0.insert(*stream, now.max(before));
        }
        (all, stored)
    }
}

/// Results of the kills.
#[derive(Debug, Default)]
struct Judge {
    counted: Counted,
    share: Share,
}

impl Judge {
    /// A kill after a question for durable bytes, with the delay of the machine before it. Returns
    /// the old bytes since the last kill, and how many of them are durable.
    fn add(
        &mut self,
        notes: &Notes,
        (asked, delay): (Instant, Duration),
        durable: &BTreeMap<String, u64>,
    ) -> (u64, u64) {
        let old = old_streams(notes, asked - OLD - delay);
        let (bytes, stored) = self.counted.add(notes, &old, durable);
        self.share.old += bytes;
        self.share.durable += stored;
        (bytes, stored)
    }

    /// Checks the share of all kills.
    fn check(&self, tier: &str, kills: u64, wanted: u64) {
        let Self { share, .. } = self;
        eprintln!(
            "tier {tier}: durable at the kill, of {} bytes older than 100 ms and the delay of the \
             machine: {:.1} %",
            share.old,
            share.percent(),
        );
        if share.is_sufficient(wanted) {
            assert!(share.is_durable(), "{share:?}");
        } else {
            warn(&format!(
                "tier {tier}: THE SHARE OF DURABLE BYTES WAS NOT CHECKED: at {kills} kills, only \
                 {} bytes were old; repeat the test on a machine with less other work",
                share.old
            ));
        }
    }
}

fn is_traced() -> bool {
    std::env::var_os("GRIDHAUL_TRACE").is_some()
}

/// Old bytes of each open stream: stream, address, bytes.
fn old_streams(notes: &Notes, time: Instant) -> Vec<(u64, String, u64)> {
    let open = notes.open.lock().unwrap();
    let streams = open.iter();
    streams
        .map(|(stream, notes)| (*stream, notes.address.to_string(), notes.sent_before(time)))
        .collect()
}

fn cycles() -> u64 {
    std::env::var("GRIDHAUL_KILL_CYCLES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_CYCLES)
}

/// How long both relays have waited for a processor so far.
fn wait_of_relays(relays: &Relays) -> Duration {
    [Role::Collector, Role::Head].map(|role| processor_wait(relays.process(role))).iter().sum()
}

/// How long the threads of a process have waited for a processor so far
/// (`/proc/<pid>/task/<tid>/schedstat`: nanoseconds on a processor and waiting, number of turns).
/// Zero without this statistic of the kernel.
fn processor_wait(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let wait = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(wait).sum())
}

/// Kills the relays of a tier again and again. Returns the shares of durable bytes and the number
/// of kills.
fn kill_repeatedly(tier: &str) -> (Judge, u64) {
    let mut relays = Relays::new(tier, "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meters = Meters::start(relays.meters, METERS);
    let machine = Machine::observe(File::create(relays.path("machine")).unwrap());
    let mut random = Random(7);
    let mut reported: BTreeMap<ledger::Key, u64> = BTreeMap::new();
    let mut judge = Judge::default();
    let (wanted, mut cycle) = (cycles(), 0);
    let mut start = Duration::ZERO;
    while cycle < wanted || cycle < EXTENSION * wanted && !judge.share.is_sufficient(wanted) {
        let (begun, waited) = (Instant::now(), wait_of_relays(&relays));
        thread::sleep(Duration::from_millis(120 + random.next(300)));
        let waits = wait_of_relays(&relays).saturating_sub(waited);
        let reconnection = start.mul_f64(RECONNECTION);
        let extension = machine.delay_since(begun).max(waits) + reconnection;
        thread::sleep(extension.min(PAUSE_EXTENSION_MAX));
        let asked = Instant::now();
        if let Some(now) = durable(&relays) {
            let waits = wait_of_relays(&relays).saturating_sub(waited);
            let delay = machine.delay_since(begun).max(asked.elapsed()).max(waits) + reconnection;
            let (old, old_durable) = judge.add(&meters.notes, (asked, delay), &now.by_address);
            if is_traced() {
                eprintln!(
                    "kill {cycle}, {} ms after the start: {old_durable} of {old} bytes durable; \
                     start of {start:.1?}, delay of the machine {delay:.1?}",
                    (asked - begun).as_millis(),
                );
            }
            reported.extend(now.by_meter);
        }
        let roles: &[Role] = match random.next(4) {
            0 | 1 => &[Role::Collector],
            2 => &[Role::Head],
            _ => &[Role::Collector, Role::Head],
        };
        roles.iter().for_each(|role| relays.kill(*role));
        let killed = Instant::now();
        roles.iter().rev().for_each(|role| relays.start(*role));
        start = killed.elapsed();
        cycle += 1;
    }
    thread::sleep(Duration::from_millis(300));
    let notes = meters.stop();
    relays.wait_until_delivered();
    relays.kill(Role::Collector);
    relays.kill(Role::Head);
    let lost = check(&relays, &reported, &notes);
    eprintln!(
        "tier {tier}: {cycle} kills; {} streams confirmed by FIN, {} observed; reported-durable \
         bytes lost: {lost}",
        notes.confirmed.lock().unwrap().len(),
        reported.len(),
    );
    assert_eq!(lost, 0);
    (judge, cycle)
}

/// Largest number of runs to see most old bytes durable.
const ATTEMPTS: u32 = 3;

/// No run loses what was reported as stored. The share of durable bytes is a matter of time: a busy
/// disk delays it without a delay that the processes show, so that it is observed again. A relay
/// that stores too late does so in each run.
fn kill_until_durable(tier: &str) {
    let wanted = cycles();
    for attempt in 1..=ATTEMPTS {
        let (judge, kills) = kill_repeatedly(tier);
        let share = &judge.share;
        if attempt == ATTEMPTS || share.is_durable() || !share.is_sufficient(wanted) {
            judge.check(tier, kills, wanted);
            return;
        }
        warn(&format!("tier {tier}: only {:.1} % of old bytes were durable", share.percent()));
    }
}

/// Writes a line that is shown although the test passes: the test harness captures the output of
/// macros only.
fn warn(text: &str) {
    std::io::stderr().write_all(format!("warning: {text}\n").as_bytes()).unwrap();
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
    kill_until_durable("local");
}

#[test]
fn nothing_stored_is_lost_by_kill_server() {
    kill_until_durable("server");
}
