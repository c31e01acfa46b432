//! Parsers of the values of options. Their errors state what is expected; those of the standard
//! library do not.

use std::str::FromStr;

use gridhaul_scenario::units::{BitRate, Duration, UnitError};

/// A whole number that is not negative.
///
/// # Errors
/// The text is no such number, or the number does not fit into the type.
pub fn whole_number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let bits = 8 * size_of::<N>() as u32;
            return format!("it is too large; the largest value is {}", u64::MAX >> (64 - bits));
        }
        "expected a whole number, not negative, such as 3".into()
    })
}

/// A number of replications: at least 1.
///
/// # Errors
/// The text is no such number.
pub fn replications(text: &str) -> Result<u32, String> {
    match whole_number(text)? {
        0 => Err("expected a whole number from 1".into()),
        number => Ok(number),
    }
}

/// A duration.
///
/// # Errors
/// The text is no duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

/// A duration that is not zero.
///
/// # Errors
/// The text is no duration, or the duration is zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("expected a time above 0, such as \"5 s\"".into());
    }
    Ok(duration)
}

/// A rate that is not zero.
///
/// # Errors
/// The text is no rate, or the rate is zero.
pub fn bit_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: UnitError| error.to_string())?;
    if rate.as_bits_per_sec() == 0 {
        return Err("expected a rate above 0, such as \"3 Mbit/s\"".into());
    }
    Ok(rate)
}
