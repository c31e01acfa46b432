//! Conversion of the values of swept keys to numbers: `"3 Mbit/s"` is three million bits per
//! second.

/// Units of scenarios: name, base unit, and number of base units in one.
const UNITS: &[(&str, &str, f64)] = &[
    ("", "", 1.0),
    ("%", "", 0.01),
    ("Gbit/s", "bit/s", 1e9),
    ("Mbit/s", "bit/s", 1e6),
    ("kbit/s", "bit/s", 1e3),
    ("bit/s", "bit/s", 1.0),
    ("d", "s", 86_400.0),
    ("h", "s", 3600.0),
    ("min", "s", 60.0),
    ("s", "s", 1.0),
    ("ms", "s", 1e-3),
    ("us", "s", 1e-6),
    ("µs", "s", 1e-6),
    ("ns", "s", 1e-9),
    ("GiB", "B", 1_073_741_824.0),
    ("GB", "B", 1e9),
    ("MiB", "B", 1_048_576.0),
    ("MB", "B", 1e6),
    ("KiB", "B", 1024.0),
    ("kB", "B", 1e3),
    ("B", "B", 1.0),
    ("km", "m", 1e3),
    ("m", "m", 1.0),
    ("mm", "m", 1e-3),
    ("dB", "dB", 1.0),
    ("packets", "packets", 1.0),
    ("segments", "segments", 1.0),
    ("messages", "messages", 1.0),
];

/// Parses a quantity into a number of base units and the base unit; `None` if the text is not a
/// quantity.
#[must_use]
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let text = text.trim().trim_matches('"').trim();
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_' | 'e' | 'E');
    let split = text.find(|c: char| !digits(c)).unwrap_or(text.len());
    let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
    let (_, base, factor) = UNITS.iter().find(|(name, _, _)| *name == unit)?;
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number * factor, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed() {
        assert_eq!(quantity("3 Mbit/s"), Some((3e6, "bit/s")));
        assert_eq!(quantity("\"25 ms\""), Some((0.025, "s")));
        assert_eq!(quantity("1.5 km"), Some((1_500.0, "m")));
        assert_eq!(quantity("-3.5 dB"), Some((-3.5, "dB")));
        assert_eq!(quantity("400_000"), Some((400_000.0, "")));
        assert_eq!(quantity("1e-3"), Some((0.001, "")));
        assert_eq!(quantity("50 segments"), Some((50.0, "segments")));
        assert_eq!(quantity("reno"), None);
        assert_eq!(quantity("3 parsec"), None);
        assert_eq!(quantity(""), None);
        assert_eq!(quantity("true"), None);
    }
}
