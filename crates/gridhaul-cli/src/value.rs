//! Parsers of the values of options. Their errors state what is expected; those of the standard
//! library do not.

use std::str::FromStr;

use gridhaul_scenario::units::{BitRate, Duration, UnitError};

/// A whole number that is not negative. `N` is an unsigned type of at most 64 bits.
///
/// # Errors
/// The text is no such number, or the number does not fit into the type.
pub fn whole_number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let bits = 8 * size_of::<N>() as u32;
            return format!("expected a whole number up to {}", u64::MAX >> (64 - bits));
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
        0 => Err("expected a whole number from 1, such as 3".into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_its_type_names_the_largest_value() {
        let beyond = [
            whole_number::<u32>("4294967296").unwrap_err(),
            whole_number::<u64>("18446744073709551616").unwrap_err(),
        ];
        assert_eq!(
            beyond,
            [
                "expected a whole number up to 4294967295",
                "expected a whole number up to 18446744073709551615",
            ]
        );
        assert_eq!(whole_number("4294967295"), Ok(u32::MAX));
        assert_eq!(whole_number("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn a_text_that_is_no_number_gets_an_example() {
        for text in ["", "-1", "1.5", "three"] {
            let error = whole_number::<u32>(text).unwrap_err();
            assert_eq!(error, "expected a whole number, not negative, such as 3", "{text:?}");
        }
    }

    #[test]
    fn zero_is_refused_with_an_example() {
        let errors = [
            replications("0").unwrap_err(),
            positive_duration("0 s").unwrap_err(),
            bit_rate("0 bit/s").unwrap_err(),
        ];
        for error in errors {
            assert!(error.starts_with("expected") && error.contains("such as"), "{error}");
        }
    }
}
