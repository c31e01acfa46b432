//! Runs over modelled paths, with a clock of the agent that has known errors.

use super::*;
use crate::clock::{ClockQuality, InjectedClock};
use crate::method::{Phase, Summary};

const MS: i64 = 1_000_000;

/// Start of the schedule on the local clock.
const START: i64 = 2_000 * MS;

/// Messages per second.
const RATE: u64 = 100;

/// Delays of a run in milliseconds.
#[derive(Clone, Copy)]
struct Path {
    /// Of messages to the agent.
    message: i64,
    /// Of exchanges, in both directions.
    exchange: [i64; 2],
    /// Every message of this number is lost; 0 for none.
    lost_every: u64,
}

/// Result of a run.
struct Result {
    converted: Vec<Converted>,
    returned: Vec<Message>,
    accounting: Accounting,
}

impl Result {
    fn summary(&self, of: fn(&Converted) -> &Message) -> Summary {
        let mut summary = Summary::new(&self.accounting.schedule);
        self.converted.iter().for_each(|message| summary.add(of(message)));
        summary
    }

    fn clock(&self) -> ClockQuality {
        let Quality { error, unknown, impossible } = self.accounting.quality();
        ClockQuality::new(self.accounting.exchanges(), error, [unknown, impossible]).unwrap()
    }
}

fn at(nanos: i64) -> Instant {
    Instant::from_nanos(nanos as u64)
}

/// Exchanges every 50 ms from time zero; messages from `START`. The agent is gone after `gone`, in
/// nanoseconds.
fn run(clock: &InjectedClock, path: Path, messages: u64, gone: i64) -> Result {
    run_with(Duration::from_secs(1), clock, path, messages, gone)
}

fn run_with(
    horizon: Duration,
    clock: &InjectedClock,
    path: Path,
    messages: u64,
    gone: i64,
) -> Result {
    let schedule = Schedule::new(RATE as f64, messages);
    let total = schedule.total();
    let mut accounting =
        Accounting::new(schedule, horizon, at(START), RemoteClock::default(), true);
    let arrives = |sequence: u64| path.lost_every == 0 || !sequence.is_multiple_of(path.lost_every);
    let sent_at = |sequence: u64| START + (sequence * 1_000 / RATE) as i64 * MS;
    let (mut sent, mut reported) = (0, 0);
    let (mut converted, mut returned) = (Vec::new(), Vec::new());
    let mut is_complete = false;
    for number in 0.. {
        let now = number * 50 * MS;
        while sent < total && sent_at(sent) <= now {
            accounting.handle_sent(sent, at(sent_at(sent)));
            sent += 1;
        }
        let [request, reply] = path.exchange.map(|delay| delay * MS);
        let (arrived, answered) = (now + request, now + request + MS / 50);
        if answered > gone {
            break;
        }
        let received = answered + reply;
        let [remote_received, remote_sent] = [arrived, answered].map(|time| clock.read(time));
        accounting.handle_exchange(Exchange { sent: now, remote_received, remote_sent, received });
        let mut report = Report { number: number as u64, ..Report::default() };
        while reported < total && sent_at(reported) + path.message * MS <= arrived {
            if arrives(reported) {
                let time = sent_at(reported) + path.message * MS;
                report.arrivals.push((reported, clock.read(time)));
                accounting.handle_returned(reported, at(time + path.message * MS));
            }
            reported += 1;
        }
        accounting.handle_report(&report, at(received));
        converted.extend(std::iter::from_fn(|| accounting.poll_one_way()));
        returned.extend(std::iter::from_fn(|| accounting.poll_round_trip()));
        is_complete = sent == total && accounting.is_complete(total);
        if is_complete {
            break;
        }
    }
    accounting.finish(sent, is_complete);
    returned.extend(std::iter::from_fn(|| accounting.poll_round_trip_rest(sent)));
    converted.extend(std::iter::from_fn(|| accounting.poll_rest()));
    Result { converted, returned, accounting }
}

fn millis(duration: Option<Duration>) -> f64 {
    duration.unwrap().as_secs_f64() * 1e3
}

const PATH: Path = Path { message: 20, exchange: [1, 1], lost_every: 0 };

const CLOCK: InjectedClock = InjectedClock { offset: -777 * MS, drift: 60e-6, step: None };

#[test]
fn latencies_are_those_of_the_path_whatever_the_clock_shows() {
    let result = run(&CLOCK, PATH, 2_000, i64::MAX);
    let earliest = result.summary(|message| &message.earliest);
    let estimate = result.summary(|message| &message.estimate);
    let latest = result.summary(|message| &message.latest);
    assert_eq!((estimate.counts.messages, estimate.counts.lost), (2_000, 0));
    let mean = millis(estimate.from_send.mean());
    assert!((mean - 20.0).abs() < 0.05, "{mean}");
    assert!(millis(earliest.from_send.max()) <= 20.0, "{:?}", earliest.from_send.max());
    assert!(millis(latest.from_send.mean()) >= 20.0 && millis(latest.from_send.max()) < 21.5);
    let clock = result.clock();
    assert_eq!(
        clock.supports_one_way(estimate.from_send.quantile(0.5).map(|quantile| quantile.value)),
        Ok(())
    );
    assert!((clock.drift.unwrap() - 60e-6).abs() < 5e-6, "{:?}", clock.drift);
    // Returned messages need no second clock.
    assert_eq!(result.returned.len(), result.converted.len());
    assert!(result.returned.iter().all(|message| millis(message.latency_from_send()) == 40.0));
}

#[test]
fn an_asymmetric_path_is_bounded_and_not_reported_as_one_way() {
    // Exchanges take the path of the messages: the estimate is wrong by half of the asymmetry, 10
    // ms.
    let path = Path { message: 25, exchange: [25, 5], ..PATH };
    let result = run(&CLOCK, path, 500, i64::MAX);
    let [low, middle, high] = [
        result.summary(|message| &message.earliest),
        result.summary(|message| &message.estimate),
        result.summary(|message| &message.latest),
    ]
    .map(|summary| millis(summary.from_send.mean()));
    assert!((middle - 15.0).abs() < 0.5, "{middle}");
    assert!(low <= 25.0 && 25.0 <= high, "{low} {high}");
    let median = result
        .summary(|message| &message.estimate)
        .from_send
        .quantile(0.5)
        .map(|quantile| quantile.value);
    let refused = result.clock().supports_one_way(median).unwrap_err();
    assert!(refused.to_string().contains("10 %"), "{refused}");
}

#[test]
fn a_step_of_the_clock_is_reported_and_latencies_stay_right() {
    let step = Some((START + 12_000 * MS, 400 * MS));
    let result = run(&InjectedClock { step, ..CLOCK }, PATH, 2_000, i64::MAX);
    let summary = result.summary(|message| &message.estimate);
    assert_eq!((summary.counts.lost, summary.counts.messages), (0, 2_000));
    let [fastest, slowest] = [0.0001, 1.0].map(|share| summary.from_send.quantile(share).unwrap());
    let (low, high) = (millis(Some(fastest.value)), millis(Some(slowest.value)));
    assert!(low > 19.9 && high < 20.1, "{low} {high}");
    let clock = result.clock();
    assert_eq!(clock.steps.len(), 1, "{:?}", clock.steps);
    assert!((clock.steps[0].1 - 400e6).abs() < 1e6, "{:?}", clock.steps);
    assert!((1..=120).contains(&clock.unknown), "{}", clock.unknown);
}

#[test]
fn lost_and_late_messages_are_counted_once() {
    let result = run(&CLOCK, Path { lost_every: 10, ..PATH }, 1_000, i64::MAX);
    assert_eq!(result.summary(|message| &message.estimate).counts.lost, 100);
    let lost = result.returned.iter().filter(|message| message.received.is_none()).count();
    assert_eq!(lost as u64 * 10, result.accounting.schedule.total());
    // All messages arrive 10 ms after their horizon, most of them before it is known that the
    // horizon has passed.
    let late = run(&CLOCK, Path { message: 1_010, ..PATH }, 100, i64::MAX);
    let counts = late.summary(|message| &message.estimate).counts;
    assert_eq!((counts.lost, counts.messages), (100, 100));
    assert!(late.accounting.arrivals().after_horizon > 0);
}

#[test]
fn a_slow_control_channel_loses_no_messages() {
    // Replies take longer than the horizon of one second.
    let result = run(&CLOCK, Path { exchange: [1, 1_200], ..PATH }, 500, i64::MAX);
    let counts = result.summary(|message| &message.estimate).counts;
    assert_eq!((counts.lost, counts.messages), (0, 500));
    assert!(result.returned.iter().all(|message| message.received.is_some()));
}

#[test]
fn the_time_of_arrival_decides_whether_a_message_is_in_time_and_not_that_of_its_report() {
    // Each message arrives after 60 ms of a horizon of 100 ms, and is reported up to 50 ms later,
    // 40 ms before the answer is here.
    let path = Path { message: 60, exchange: [1, 40], lost_every: 0 };
    let result = run_with(Duration::from_millis(100), &CLOCK, path, 500, i64::MAX);
    let counts = result.summary(|message| &message.estimate).counts;
    assert_eq!((counts.messages, counts.lost), (500, 0));
    assert_eq!(result.accounting.arrivals().after_horizon, 0);
    assert!(result.converted.iter().all(|message| message.estimate.copies == 1));
    // With 45 ms more, every message is late, although the asymmetry of the exchanges hides the
    // first 20 ms.
    let path = Path { message: 125, ..path };
    let result = run_with(Duration::from_millis(100), &CLOCK, path, 500, i64::MAX);
    let counts = result.summary(|message| &message.estimate).counts;
    assert_eq!((counts.messages, counts.lost), (500, 500));
    assert_eq!(result.accounting.arrivals().after_horizon, 600);
}

/// The arrivals of the last horizon counted, and the losses of this time did not.
#[test]
fn the_loss_of_a_run_whose_agent_is_gone_is_that_of_the_path() {
    let path = Path { lost_every: 10, ..PATH };
    let result = run(&CLOCK, path, 2_000, START + 3_500 * MS);
    let loss = result.summary(|message| &message.estimate).loss();
    assert!((120..=140).contains(&loss.of), "{loss:?}");
    assert!((12..=14).contains(&loss.count), "{loss:?}");
}

#[test]
fn messages_whose_horizon_had_passed_when_the_agent_went_away_count_and_the_rest_does_not() {
    let gone = START + 6_000 * MS;
    let result = run(&CLOCK, PATH, 2_000, gone);
    // Everything that arrived until about 50 ms before the end was reported: 100 messages in each
    // second. Those of the horizon of 1 s and the time for reports before are not counted.
    let reported = result.converted.len() as u64;
    assert!((470..=480).contains(&reported), "{reported}");
    assert!((470..=480).contains(&result.returned.len()), "{}", result.returned.len());
    let not_counted = result.accounting.not_counted();
    assert_eq!(reported + not_counted, 601, "messages that were sent");
    let measured =
        result.converted.iter().filter(|message| message.estimate.phase == Phase::Measured);
    assert!(measured.clone().all(|message| message.estimate.copies == 1), "none is lost");
    assert!(measured.filter(|message| message.estimate.received.is_some()).count() > 360);
    assert!(
        result.returned.iter().all(|message| message.received.is_some()),
        "none is lost on its return"
    );
}
