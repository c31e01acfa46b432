//! Values alone, in network byte order.

use super::{PayloadError, Sample};

/// Width of a raw value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
}

pub(super) fn encode(width: Width, sample: &Sample) -> Vec<u8> {
    let values = sample.values.iter();
    match width {
        Width::Float32 => values.flat_map(|value| (*value as f32).to_be_bytes()).collect(),
        Width::Float64 => values.flat_map(|value| value.to_be_bytes()).collect(),
    }
}

pub(super) fn decode(width: Width, bytes: &[u8]) -> Result<Sample, PayloadError> {
    let values = match width {
        Width::Float32 => {
            let (values, rest) = bytes.as_chunks();
            rest.is_empty()
                .then(|| values.iter().copied().map(f32::from_be_bytes).map(f64::from).collect())
        }
        Width::Float64 => {
            let (values, rest) = bytes.as_chunks();
            rest.is_empty().then(|| values.iter().copied().map(f64::from_be_bytes).collect())
        }
    };
    let error = PayloadError::Value("expected a multiple of the width of a value");
    Ok(Sample { values: values.ok_or(error)?, ..Sample::default() })
}
