//! Parsers of the values of arguments.

pub(super) use gridhaul_cli::value::duration;
use gridhaul_measure::measurement::limits;
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use gridhaul_scenario::units::{BitRate, Duration, Probability, UnitError, WindowSize};

pub(super) fn rate(text: &str) -> Result<f64, String> {
    // A text that is no number is outside of every range.
    let rate = text.parse().unwrap_or(f64::NAN);
    limits::rate(rate).map(|()| rate)
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    if text.contains('%') {
        let share: Result<Probability, UnitError> = text.parse();
        return share.map(Probability::ratio).map_err(|error| error.to_string());
    }
    let share = text.parse().unwrap_or(f64::NAN);
    limits::share(share).map(|()| share)
}

pub(super) fn resolution(text: &str) -> Result<f64, String> {
    let resolution = share(text)?;
    limits::resolution(resolution).map(|()| resolution)
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
    // A text that is no number is a message without bytes.
    let bytes = text.parse().unwrap_or(0);
    limits::message_bytes(bytes).map(|()| bytes)
}

/// A duration that is not zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    checked_duration(text, limits::positive)
}

/// An interval in whole seconds.
pub(super) fn whole_seconds(text: &str) -> Result<Duration, String> {
    checked_duration(text, limits::whole_seconds)
}

/// An interval between two packets.
pub(super) fn packet_interval(text: &str) -> Result<Duration, String> {
    checked_duration(text, limits::packet_interval)
}

/// An interval in which a master of DNP3 polls.
pub(super) fn poll_interval(text: &str) -> Result<Duration, String> {
    checked_duration(text, limits::poll_interval)
}

/// A processor that this program may use.
pub(super) fn processor(text: &str) -> Result<usize, String> {
    // A text that is no number is no processor of any machine.
    let number = text.parse().unwrap_or(usize::MAX);
    limits::processor(number).map(|()| number)
}

pub(super) fn bit_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: UnitError| error.to_string())?;
    limits::bit_rate(rate).map(|()| rate)
}

pub(super) fn congestion_control(text: &str) -> Result<CongestionControlAlgorithm, String> {
    let known = CongestionControlAlgorithm::ALL;
    known.iter().copied().find(|algorithm| algorithm.name() == text).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|algorithm| algorithm.name()).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

pub(super) fn window(text: &str) -> Result<WindowSize, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

fn checked_duration(
    text: &str,
    check: fn(Duration) -> Result<(), String>,
) -> Result<Duration, String> {
    let found = duration(text)?;
    check(found).map(|()| found)
}
