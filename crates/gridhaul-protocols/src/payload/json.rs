//! JSON in the layout of VILLASnode: one object in an array, with the separators and number format
//! of its library jansson.

use std::fmt::Write;

use serde::Deserialize;

use super::{PayloadError, Sample, Timestamp};

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    ts: Times,
    sequence: Option<u64>,
    data: Vec<f64>,
}

#[derive(Deserialize, Default)]
struct Times {
    origin: Option<(u32, u32)>,
    received: Option<(u32, u32)>,
}

pub(super) fn encode(sample: &Sample) -> String {
    let mut text = String::from("[{");
    if let Some(Timestamp { seconds, nanoseconds }) = sample.origin {
        let _ = write!(text, "\"ts\": {{\"origin\": [{seconds}, {nanoseconds}]}}, ");
    }
    if let Some(sequence) = sample.sequence {
        let _ = write!(text, "\"sequence\": {sequence}, ");
    }
    let values: Vec<_> = sample.values.iter().map(|value| number(*value)).collect();
    let _ = write!(text, "\"data\": [{}]}}]", values.join(", "));
    text
}

pub(super) fn decode(bytes: &[u8]) -> Result<Sample, PayloadError> {
    let objects: Vec<Object> = serde_json::from_slice(bytes)?;
    let [object] =
        <[Object; 1]>::try_from(objects).map_err(|objects| PayloadError::Samples(objects.len()))?;
    let time = |(seconds, nanoseconds)| Timestamp { seconds, nanoseconds };
    Ok(Sample {
        origin: object.ts.origin.map(time),
        received: object.ts.received.map(time),
        sequence: object.sequence,
        values: object.data,
    })
}

/// A number with 17 significant digits, as `printf` writes it with `%.17g`, then with `.0` if it
/// has neither point nor exponent, and without sign and leading zeros of a positive exponent. JSON
/// has no number for infinity or NaN: `null`.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    let scientific = format!("{value:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let digits = digits.replace('.', "");
    let significant = digits.trim_end_matches('0');
    let significant = if significant.is_empty() { "0" } else { significant };
    // `%g` has an exponent if it is below -4 or not below the precision.
    if !(-4..17).contains(&exponent) {
        let (first, rest) = significant.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{exponent}");
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{significant}");
    }
    let whole = exponent as usize + 1;
    if significant.len() <= whole {
        let zeros = "0".repeat(whole - significant.len());
        return format!("{sign}{significant}{zeros}.0");
    }
    let (whole, fraction) = significant.split_at(whole);
    format!("{sign}{whole}.{fraction}")
}
