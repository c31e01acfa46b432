//! Parsers of the values of arguments.

use gridhaul_measure::agent::message::POLL_MIN;
use gridhaul_measure::method::HEADER_BYTES;
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use gridhaul_scenario::units::{BitRate, Duration, Probability, UnitError, WindowSize};
use rustix::thread::{CpuSet, sched_getaffinity};

pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.01..=1e6).contains(rate));
    rate.ok_or_else(|| "expected messages per second between 0.01 and 1000000".into())
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    if text.contains('%') {
        let share: Result<Probability, UnitError> = text.parse();
        return share.map(Probability::ratio).map_err(|error| error.to_string());
    }
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number between 0 and 1, or a percentage such as \"1 %\"".into())
}

/// The resolution of a search. Below the smallest one, the next rate could be equal to the last, and the search would
/// not end.
pub(super) fn resolution(text: &str) -> Result<f64, String> {
    const SMALLEST: f64 = 0.001;
    let found = share(text)?;
    if found < SMALLEST {
        return Err(format!("expected a resolution between {SMALLEST} and 1"));
    }
    Ok(found)
}

pub(super) fn ppm(text: &str) -> Result<f64, String> {
    let drift = text.parse().ok().filter(|drift| (-900.0..=900.0).contains(drift));
    drift.ok_or_else(|| "expected a drift between -900 and 900 ppm".into())
}

pub(super) fn values(text: &str) -> Result<usize, String> {
    let values = text.parse().ok().filter(|values| (1..=300).contains(values));
    values.ok_or_else(|| "expected a number of values between 1 and 300".into())
}

/// A duration with sign, in nanoseconds.
pub(super) fn signed_nanos(text: &str) -> Result<i64, String> {
    let (sign, length) = text.strip_prefix('-').map_or((1, text), |length| (-1, length));
    let nanos = i64::try_from(duration(length)?.as_nanos());
    nanos.map(|nanos| sign * nanos).map_err(|error| error.to_string())
}

pub(super) fn message_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (HEADER_BYTES..=65_507).contains(bytes));
    bytes.ok_or_else(|| {
        format!(
            "expected bytes between {HEADER_BYTES}, the header, and 65507, the largest datagram"
        )
    })
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

/// A duration that is not zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    let found = duration(text)?;
    if found.is_zero() {
        return Err("expected a time above 0, such as \"5 s\"".into());
    }
    Ok(found)
}

/// An interval that MQTT and AMQP 0-9-1 carry in 16 bits, in seconds. Another value would be rounded on the way to the broker.
pub(super) fn whole_seconds(text: &str) -> Result<Duration, String> {
    const SECOND: u64 = 1_000_000_000;
    let found = duration(text)?;
    let is_whole = found.as_nanos() % SECOND == 0;
    if !is_whole || !(1..=u64::from(u16::MAX)).contains(&(found.as_nanos() / SECOND)) {
        return Err("expected whole seconds, from \"1 s\" to \"65535 s\"".into());
    }
    Ok(found)
}

/// An interval between two packets. Without a least value, the sender would send packets without an end.
pub(super) fn packet_interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_micros(100);
    let found = duration(text)?;
    if found < LEAST {
        return Err(format!("expected an interval of at least {LEAST}"));
    }
    Ok(found)
}

/// An interval in which a master of DNP3 polls.
pub(super) fn poll_interval(text: &str) -> Result<Duration, String> {
    let found = duration(text)?;
    if found < POLL_MIN {
        return Err(format!("expected an interval of at least {POLL_MIN}"));
    }
    Ok(found)
}

/// A processor that this program may use.
pub(super) fn processor(text: &str) -> Result<usize, String> {
    let usable = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let is_usable = |number: &usize| *number < CpuSet::MAX_CPU && usable.is_set(*number);
    text.parse().ok().filter(is_usable).ok_or_else(|| {
        let numbers = (0..CpuSet::MAX_CPU).filter(is_usable).map(|it| it.to_string());
        format!("expected a processor of this machine: {}", numbers.collect::<Vec<_>>().join(", "))
    })
}

pub(super) fn bit_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: UnitError| error.to_string())?;
    if rate.as_bits_per_sec() == 0 {
        return Err("expected a rate above 0, such as \"3 Mbit/s\"".into());
    }
    Ok(rate)
}

pub(super) fn congestion_control(text: &str) -> Result<CongestionControlAlgorithm, String> {
    let known = CongestionControlAlgorithm::ALL;
    known.iter().copied().find(|it| it.name() == text).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|it| it.name()).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

pub(super) fn window(text: &str) -> Result<WindowSize, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}
