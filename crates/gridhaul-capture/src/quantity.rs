//! Quantities as text, with three digits.

/// A share in per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A time in seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")], false)
}

/// A rate in bit/s.
pub(crate) fn bit_rate(rate: f64) -> String {
    scaled(rate, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")], true)
}

/// A number of bytes.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")], true)
}

/// A value in the largest unit in which it is at least 1. `is_whole`: values in the smallest unit
/// have no fraction.
fn scaled(value: f64, units: &[(f64, &str)], is_whole: bool) -> String {
    let unit = units.iter().find(|(size, _)| value >= *size).or(units.last());
    let (size, name) = unit.copied().unwrap_or((1.0, ""));
    let number = value / size;
    let smallest = units.last().is_some_and(|(last, _)| *last == size);
    let digits = match number {
        _ if is_whole && smallest => 0,
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_the_largest_unit_that_fits() {
        assert_eq!(seconds(0.012_34), "12.3 ms");
        assert_eq!(seconds(2.0), "2.00 s");
        assert_eq!(bit_rate(950_000.0), "950 kbit/s");
        assert_eq!(bytes(1_460.0), "1.46 kB");
        assert_eq!(bytes(536.0), "536 B");
    }
}
