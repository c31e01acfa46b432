//! Ranges of single values, for options and files alike.

use gridhaul_protocols::dnp3::POLL_MIN;
use gridhaul_protocols::message_header::HEADER_BYTES;
use gridhaul_scenario::units::{BitRate, Duration};
use rustix::thread::{CpuSet, sched_getaffinity};

/// Largest number of messages of a run: with fewer than 2^40, sums of their numbers do not
/// overflow.
pub const MESSAGES_MAX: u64 = 1_000_000_000_000;

/// Largest number of runs of an experiment.
pub const REPETITIONS_MAX: u32 = 1_000;

/// Bytes of the shortest and of the longest packet of cross traffic.
pub const CROSS_TRAFFIC_BYTES: [u16; 2] = [60, 1_500];

/// Largest VLAN identifier.
pub const VLAN_MAX: u16 = 4_094;

/// Checks a rate in messages per second.
///
/// # Errors
/// Expected value.
pub fn rate(rate: f64) -> Result<(), String> {
    let is_possible = (0.01..=1e6).contains(&rate);
    is_possible
        .then_some(())
        .ok_or_else(|| "expected messages per second between 0.01 and 1000000".into())
}

/// Checks a share.
///
/// # Errors
/// Expected value.
pub fn share(share: f64) -> Result<(), String> {
    (0.0..=1.0)
        .contains(&share)
        .then_some(())
        .ok_or_else(|| "expected a number between 0 and 1, or a percentage such as \"1 %\"".into())
}

/// Checks the resolution of a search. Below the smallest one, the next rate could be equal to the
/// last, and the search would not end.
///
/// # Errors
/// Expected value.
pub fn resolution(resolution: f64) -> Result<(), String> {
    const SMALLEST: f64 = 0.001;
    share(resolution)?;
    (resolution >= SMALLEST)
        .then_some(())
        .ok_or_else(|| format!("expected a resolution between {SMALLEST} and 1"))
}

/// Checks the bytes of a message.
///
/// # Errors
/// Expected value.
pub fn message_bytes(bytes: usize) -> Result<(), String> {
    (HEADER_BYTES..=65_507).contains(&bytes).then_some(()).ok_or_else(|| {
        format!(
            "expected bytes between {HEADER_BYTES}, the header, and 65507, the largest datagram"
        )
    })
}

/// Checks a duration that must not be zero.
///
/// # Errors
/// Expected value.
pub fn positive(time: Duration) -> Result<(), String> {
    (!time.is_zero()).then_some(()).ok_or_else(|| "expected a time above 0, such as \"5 s\"".into())
}

/// Checks an interval that MQTT and AMQP 0-9-1 carry in 16 bits, in seconds. Another value would be
/// rounded on the path to the broker.
///
/// # Errors
/// Expected value.
pub fn whole_seconds(time: Duration) -> Result<(), String> {
    const SECOND: u64 = 1_000_000_000;
    let is_whole = time.as_nanos().is_multiple_of(SECOND);
    (is_whole && (1..=u64::from(u16::MAX)).contains(&(time.as_nanos() / SECOND)))
        .then_some(())
        .ok_or_else(|| "expected whole seconds, from \"1 s\" to \"65535 s\"".into())
}

/// Checks an interval between two packets. Without a lower limit, the sender would send packets
/// without an end.
///
/// # Errors
/// Expected value.
pub fn packet_interval(interval: Duration) -> Result<(), String> {
    const MIN: Duration = Duration::from_micros(100);
    (interval >= MIN).then_some(()).ok_or_else(|| format!("expected an interval of at least {MIN}"))
}

/// Checks an interval in which a master of DNP3 polls.
///
/// # Errors
/// Expected value.
pub fn poll_interval(interval: Duration) -> Result<(), String> {
    (interval >= POLL_MIN)
        .then_some(())
        .ok_or_else(|| format!("expected an interval of at least {POLL_MIN}"))
}

/// Checks a bit rate that must not be zero.
///
/// # Errors
/// Expected value.
pub fn bit_rate(rate: BitRate) -> Result<(), String> {
    (rate.as_bits_per_sec() > 0)
        .then_some(())
        .ok_or_else(|| "expected a rate above 0, such as \"3 Mbit/s\"".into())
}

/// Checks a processor that this program may use.
///
/// # Errors
/// Processors of this machine.
pub fn processor(number: usize) -> Result<(), String> {
    let usable = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let is_usable = |number: &usize| *number < CpuSet::MAX_CPU && usable.is_set(*number);
    is_usable(&number).then_some(()).ok_or_else(|| {
        let numbers = (0..CpuSet::MAX_CPU).filter(is_usable).map(|number| number.to_string());
        format!("expected a processor of this machine: {}", numbers.collect::<Vec<_>>().join(", "))
    })
}
