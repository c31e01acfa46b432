//! Formatting of numbers: four significant digits, unit prefixes, confidence intervals.

use gridhaul_scenario::answer::{Estimate, Metric};

/// Placeholder for an unknown value.
pub const UNKNOWN: &str = "–";

/// A value with its unit: `1.21 Mbit/s`; `–` if it is not a number.
#[must_use]
pub fn value(value: f64, unit: &str) -> String {
    let prefix = Prefix::for_magnitude(value, unit);
    join(number(value / prefix.factor), &prefix.unit)
}

/// A mean with its 95 % confidence interval: `1.21 ± 0.03 Mbit/s`; `–` if it is unknown.
#[must_use]
pub fn estimate(estimate: &Estimate, unit: &str) -> String {
    let Some(mean) = estimate.mean.filter(|mean| mean.is_finite()) else {
        return UNKNOWN.into();
    };
    let prefix = Prefix::for_magnitude(mean, unit);
    join(interval(mean, estimate.ci95, prefix.factor), &prefix.unit)
}

/// As [`estimate`], with its qualification: `1.21 ± 0.03 s (censored, n = 3 of 5)`.
#[must_use]
pub fn qualified(estimate: &Estimate, unit: &str, replications: u32) -> String {
    self::estimate(estimate, unit) + &qualification(estimate, replications)
}

/// The qualification of a mean: whether it excludes unfinished transfers, and the number of
/// replications with a value if it is not all of them. Empty for other means.
#[must_use]
pub fn qualification(estimate: &Estimate, replications: u32) -> String {
    let mut parts = Vec::new();
    if estimate.censored {
        parts.push("censored".to_owned());
    }
    if estimate.mean.is_some() && estimate.n < replications {
        parts.push(format!("n = {} of {replications}", estimate.n));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// Means of one row, all in one unit: `0.56 Mbit/s` and `1.12 Mbit/s`. If that would hide small
/// values, each has its own unit.
#[must_use]
pub fn estimates(all: &[Estimate], unit: &str) -> Vec<String> {
    let Some(prefix) = Prefix::common(all, unit) else {
        return all.iter().map(|one| estimate(one, unit)).collect();
    };
    let text = |one: &Estimate| match one.mean.filter(|mean| mean.is_finite()) {
        Some(mean) => join(interval(mean, one.ci95, prefix.factor), &prefix.unit),
        None => UNKNOWN.to_owned(),
    };
    all.iter().map(text).collect()
}

/// A value for a sentence, with three significant digits: `1.21 Mbit/s`; a ratio in percent.
pub(crate) fn rough(value: f64, unit: Unit<'_>) -> String {
    match unit {
        Unit::Share => format!("{} %", digits(value * 100.0)),
        Unit::Of(unit) => {
            let prefix = Prefix::for_magnitude(rounded(value), unit);
            join(digits(value / prefix.factor), &prefix.unit)
        }
    }
}

/// Two values for a sentence: in one unit (`0.56 → 1.12 Mbit/s`) unless that would hide the smaller
/// value.
pub(crate) fn change(from: f64, to: f64, unit: Unit<'_>) -> String {
    let [first, second] = both(from, to, unit);
    match (first.split_once(' '), second.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} → {second}"),
        _ => format!("{first} → {second}"),
    }
}

/// Two values for a sentence, each with its unit: in the same unit unless that would hide the
/// smaller value.
pub(crate) fn both(from: f64, to: f64, unit: Unit<'_>) -> [String; 2] {
    let (small, large) = (from.abs().min(to.abs()), from.abs().max(to.abs()));
    match unit {
        Unit::Of(name) if small > 0.0 && large / small < 50.0 => {
            let prefix = Prefix::for_magnitude(rounded(large), name);
            [from, to].map(|value| join(digits(value / prefix.factor), &prefix.unit))
        }
        _ => [from, to].map(|value| rough(value, unit)),
    }
}

/// The unit of a number in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit<'a> {
    /// A ratio, in percent.
    Share,
    /// A number with this unit.
    Of(&'a str),
}

/// Three significant digits; all digits before the decimal point are kept.
fn digits(value: f64) -> String {
    number(rounded(value))
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() || value.abs() >= 1e3 {
        return value;
    }
    let power = 10f64.powi(2 - exponent(value));
    if power.is_finite() { (value * power).round() / power } else { value }
}

/// A number with four significant digits and separated thousands; digits before the decimal point
/// are never rounded. `–` if it is not a number.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return match (value.is_nan(), value > 0.0) {
            (true, _) => UNKNOWN.into(),
            (_, true) => "∞".into(),
            (_, false) => "−∞".into(),
        };
    }
    if value == 0.0 {
        return "0".into();
    }
    let mut exponent = exponent(value);
    if !(-4..15).contains(&exponent) {
        let mut digits = trimmed(value / 10f64.powi(exponent), 3);
        // 9.9996 is rounded to 10.
        if digits.ends_with("10") {
            digits.pop();
            exponent += 1;
        }
        // Powers of ten below 1e-308 are not representable: use Rust's formatting.
        if exponent < -300 {
            digits = format!("{value:.0e}").split('e').next().unwrap_or("1").replace('-', "−");
        }
        return format!("{digits}×10{}", superscript(exponent));
    }
    trimmed(value, (3 - exponent).max(0) as usize)
}

/// A unit with a prefix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prefix {
    /// Number of base units in one prefixed unit.
    pub(crate) factor: f64,
    /// Prefix and unit.
    pub(crate) unit: String,
}

impl Prefix {
    /// A common prefix for all means; `None` if it would hide the small ones.
    pub(crate) fn common(all: &[Estimate], unit: &str) -> Option<Self> {
        let sizes = all.iter().filter_map(|one| one.mean).map(f64::abs);
        let sizes = sizes.filter(|size| size.is_finite() && *size > 0.0);
        let (smallest, largest) = sizes
            .fold((f64::INFINITY, 0.0_f64), |(minimum, maximum), size| {
                (minimum.min(size), maximum.max(size))
            });
        let prefix = Self::for_magnitude(largest, unit);
        (smallest / prefix.factor >= 0.01).then_some(prefix)
    }

    /// The prefix for numbers of this magnitude. Dimensionless numbers and counts have none.
    pub(crate) fn for_magnitude(magnitude: f64, unit: &str) -> Self {
        let steps: &[(f64, &str)] = match unit {
            "bit/s" | "bit" | "B" | "B/s" | "Hz" => {
                &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
            }
            "m" => &[(1e3, "k"), (1.0, ""), (1e-3, "m")],
            "s" => &[(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")],
            _ => &[(1.0, "")],
        };
        // Rounding to four digits must not give 1000 if there is a larger prefix.
        let magnitude = magnitude.abs() * 1.000_05;
        let plain = (1.0, "");
        let chosen = if magnitude > 0.0 && magnitude.is_finite() {
            steps.iter().find(|(factor, _)| magnitude >= *factor).or(steps.last())
        } else {
            None
        };
        let (factor, prefix) = *chosen.unwrap_or(&plain);
        Self { factor, unit: format!("{prefix}{unit}") }
    }
}

/// A mean and its confidence interval, divided by `factor`, with the decimals given by the
/// interval.
pub(crate) fn interval(mean: f64, ci95: Option<f64>, factor: f64) -> String {
    let mean = mean / factor;
    let Some(half) = ci95.map(|half| half / factor).filter(|half| half.is_finite()) else {
        return number(mean);
    };
    if half <= 0.0 && mean == 0.0 {
        return number(mean);
    }
    if half <= 0.0 {
        return format!("{} ± 0", number(mean));
    }
    let size = if mean == 0.0 { half } else { mean };
    let extreme = |value: f64| !(-300..300).contains(&exponent(value));
    if extreme(size) || extreme(half) || exponent(half) - exponent(size) > 6 {
        return format!("{} ± {}", number(mean), number(half));
    }
    if !(-3..15).contains(&exponent(size)) {
        let power = exponent(size);
        let scaled = interval(mean, Some(half), 10f64.powi(power));
        return format!("({scaled})×10{}", superscript(power));
    }
    // Two significant digits of the interval, but at most six of the mean.
    let decimals = (1 - exponent(half)).clamp(0, (5 - exponent(size)).max(0));
    if half < 0.5 * 10f64.powi(-decimals) {
        return format!("{} ± <{}", number(mean), number(10f64.powi(-decimals)));
    }
    let decimals = decimals as usize;
    format!("{} ± {}", fixed(mean, decimals), fixed(half, decimals))
}

/// A number with fixed decimals and separated thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.contains(|digit: char| ('1'..='9').contains(&digit)) {
        out.push('−');
    }
    for (index, digit) in integer.chars().enumerate() {
        let left = integer.len() - index;
        // Four-digit numbers are not separated (SI brochure, 5.4.4).
        if index > 0 && left.is_multiple_of(3) && integer.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// An exponent in superscript digits.
pub(crate) fn superscript(exponent: i32) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = exponent.to_string();
    text.chars().map(|c| c.to_digit(10).map_or('⁻', |digit| digits[digit as usize])).collect()
}

/// Name and unit of the quantity in a column named `<quantity>_<unit>`.
pub(crate) fn column(name: &str) -> (String, &'static str) {
    // Parsing a name that is no metric would search for similar names.
    if let Some(metric) = Metric::ALL.iter().find(|metric| metric.info().column == name) {
        return (metric.info().heading.to_owned(), metric.info().unit);
    }
    let units = [
        ("_bit_per_s", "bit/s"),
        ("_byte_per_s", "B/s"),
        ("_packets_per_s", "packets/s"),
        ("_s", "s"),
        ("_bytes", "B"),
        ("_byte", "B"),
        ("_bit", "bit"),
        ("_packets", "packets"),
        ("_segments", "segments"),
        ("_ratio", ""),
        ("_count", ""),
        ("_index", ""),
    ];
    let matched = units.iter().find_map(|(end, unit)| name.strip_suffix(end).map(|q| (q, *unit)));
    let (quantity, unit) = matched.unwrap_or((name, ""));
    let words = match quantity {
        "cwnd" => "congestion window".to_owned(),
        "ssthresh" => "slow-start threshold".to_owned(),
        "rtt" => "round-trip time".to_owned(),
        "srtt" => "smoothed round-trip time".to_owned(),
        "rto" => "retransmission timeout".to_owned(),
        "in_flight" => "data in flight".to_owned(),
        other => other.replace('_', " "),
    };
    (words, unit)
}

fn join(number: String, unit: &str) -> String {
    if unit.is_empty() || number == UNKNOWN { number } else { format!("{number} {unit}") }
}

fn exponent(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mantissa_is_below_ten() {
        assert_eq!(number(9.999_99e-10), "1×10⁻⁹");
        assert_eq!(number(-9.999_99e-10), "−1×10⁻⁹");
        assert_eq!(number(9.999e-10), "9.999×10⁻¹⁰");
    }

    #[test]
    fn numbers_are_rounded_and_prefixed() {
        let mut table = String::new();
        for (number, unit) in [
            (1_209_870.0, "bit/s"),
            (999_960.0, "bit/s"),
            (130_000.0, "bit/s"),
            (0.0, "bit/s"),
            (0.025, "s"),
            (0.000_012_34, "s"),
            (3600.0, "s"),
            (86_400.0, "s"),
            (66_600.0, "B"),
            (50.0, "packets"),
            (1234.0, ""),
            (1_234_567.0, ""),
            (12.345_678, ""),
            (0.012_345_678, ""),
            (0.000_012_3, ""),
            (-0.5, ""),
            (f64::NAN, "s"),
            (f64::INFINITY, "bit/s"),
        ] {
            table += &format!("{number:>12} {unit:<7} | {}\n", value(number, unit));
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn intervals_determine_the_digits() {
        let mut table = String::new();
        for (mean, ci95, unit) in [
            (1_209_870.0, Some(31_234.0), "bit/s"),
            (1_209_870.0, Some(0.0), "bit/s"),
            (1_209_870.0, Some(0.001), "bit/s"),
            (1_209_870.0, None, "bit/s"),
            (0.025, Some(0.1), "s"),
            (12_345.6, Some(78.9), ""),
            (0.0123, Some(0.0004), ""),
            (0.0, Some(0.5), ""),
            (3.0e-7, Some(1.0e-8), ""),
        ] {
            let text = estimate(&known(mean, ci95), unit);
            table += &format!("{mean:>9} ± {:<8} {unit:<5} | {text}\n", format!("{ci95:?}"));
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn means_over_some_replications_are_qualified() {
        let time = Estimate { ci95: Some(0.031), ..Estimate::exact(1.21, 3) };
        assert_eq!(qualified(&time, "s", 3), "1.210 ± 0.031 s");
        assert_eq!(qualified(&time, "s", 5), "1.210 ± 0.031 s (n = 3 of 5)");
        let censored = Estimate { censored: true, ..time };
        assert_eq!(qualified(&censored, "s", 3), "1.210 ± 0.031 s (censored)");
        assert_eq!(qualified(&censored, "s", 5), "1.210 ± 0.031 s (censored, n = 3 of 5)");
        assert_eq!(qualified(&Estimate::default(), "s", 5), UNKNOWN);
    }

    fn known(mean: f64, ci95: Option<f64>) -> Estimate {
        Estimate { ci95, ..Estimate::exact(mean, 3) }
    }

    proptest! {
        #[test]
        fn any_number_can_be_formatted(mean in any::<f64>(), half in any::<f64>()) {
            for unit in ["bit/s", "s", "B", "packets", ""] {
                prop_assert!(!value(mean, unit).is_empty());
                let text = estimate(&known(mean, Some(half)), unit);
                prop_assert!(!text.is_empty() && text.chars().count() < 60, "{text}");
            }
        }
    }
}
