//! Decimal numbers, parsed without rounding.

/// A decimal number: `digits` × 10^`exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// Whether the number has a minus sign.
    pub negative: bool,
    /// Digits without the decimal point, at most 24 significant ones.
    pub digits: u128,
    /// The power of ten.
    pub exponent: i32,
}

/// Digits that are kept: with a unit of up to 2^47 base units the product still fits 128 bits.
const DIGITS_MAX: u32 = 24;

/// Splits `3.5e2 ms` into its number and its unit, without the space between.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = number_end(text.as_bytes());
    (&text[..end], text[end..].trim_start())
}

impl Decimal {
    /// Parses digits with underscores, at most one decimal point and an optional exponent.
    #[must_use]
    pub fn parse(number: &str) -> Option<Self> {
        let (negative, number) = match number.strip_prefix('-') {
            Some(number) => (true, number),
            None => (false, number),
        };
        let (mantissa, exponent) = match number.split_once(['e', 'E']) {
            // A larger exponent is limited: the number is too large or too small in any case.
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (number, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if !is_digits(integer) || (mantissa.contains('.') && !is_digits(fraction)) {
            return None;
        }
        let (mut digits, mut exponent, mut kept) = (0_u128, exponent, 0);
        for (in_fraction, digit) in digits_of(integer)
            .map(|digit| (false, digit))
            .chain(digits_of(fraction).map(|d| (true, d)))
        {
            let keep = kept < DIGITS_MAX;
            if keep {
                digits = digits * 10 + u128::from(digit);
                kept += u32::from(digits > 0);
            }
            exponent += i32::from(!keep) - i32::from(in_fraction);
        }
        Some(Self { negative, digits, exponent })
    }

    /// The absolute value times `scale`, rounded to the nearest integer, halves away from zero;
    /// `None` above 128 bits.
    #[must_use]
    pub fn times(self, scale: u64) -> Option<u128> {
        let product = self.digits * u128::from(scale);
        if product == 0 {
            return Some(0);
        }
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        match (self.exponent < 0, power) {
            (false, power) => product.checked_mul(power?),
            // The product is below 2^127, thus below half of 10^39.
            (true, None) => Some(0),
            (true, Some(power)) => {
                Some(product / power + u128::from(product % power >= power.div_ceil(2)))
            }
        }
    }
}

/// Length of the number at the start of a text.
fn number_end(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'_');
    let run = |from: usize| text[from..].iter().take_while(|byte| is_part(byte)).count();
    let mantissa = sign + run(sign);
    if mantissa == sign || !matches!(text.get(mantissa), Some(b'e' | b'E')) {
        return mantissa;
    }
    let sign = usize::from(matches!(text.get(mantissa + 1), Some(b'-' | b'+')));
    match run(mantissa + 1 + sign) {
        0 => mantissa,
        digits => mantissa + 1 + sign + digits,
    }
}

fn exponent_of(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, text),
    };
    const BEYOND: i32 = 100_000_000;
    let value = digits_of(digits).fold(0, |value: i32, digit| {
        value.saturating_mul(10).saturating_add(i32::from(digit)).min(BEYOND)
    });
    is_digits(digits).then_some(sign * value)
}

fn is_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn digits_of(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_split_from_units_and_read_exactly() {
        assert_eq!(split(" 3.0e2 ms "), ("3.0e2", "ms"));
        assert_eq!(split("5 Ebit/s"), ("5", "Ebit/s"));
        assert_eq!(split("5e"), ("5", "e"));
        assert_eq!(split("NaN s"), ("", "NaN s"));
        let times = |text: &str, scale| Decimal::parse(text).and_then(|number| number.times(scale));
        assert_eq!(times("9007199254740993", 1), Some(9_007_199_254_740_993));
        assert_eq!(times("1_000.000_5", 1_000_000), Some(1_000_000_500));
        assert_eq!(times("0.5", 1), Some(1));
        assert_eq!(times("1e-40", 1), Some(0));
        assert_eq!(times("1e400", 1), None);
        assert_eq!(times("0e400", 1), Some(0));
        for bad in ["", ".5", "5.", "1.2.3", "_1", "1e", "1e+", "+1", "--1"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }
}
