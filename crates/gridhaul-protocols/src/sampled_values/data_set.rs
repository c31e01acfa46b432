//! Data sets of samples: 32-bit floats, and the fixed data set of 9-2LE.
//!
//! `seqData` contains the values without tags or lengths; sender and receiver must agree on the
//! data set.

use crate::iec61850::FrameError;

/// Channels of the data set of 9-2LE: three phase currents and the neutral, three phase voltages
/// and the neutral.
pub const LIGHT_EDITION_CHANNELS: usize = 8;

/// A channel of 9-2LE (UCA implementation guideline to 9-2, data set `PhsMeas1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LightEditionChannel {
    /// Sample: a current in units of 1 mA, or a voltage in units of 10 mV.
    pub value: i32,
    /// Quality (IEC 61850-7-3), 13 bits, and the flag `derived`.
    pub quality: u32,
}

/// Appends values as 32-bit floats, as VILLASnode sends them.
pub fn write_float_values(samples: &mut Vec<u8>, values: &[f32]) {
    values.iter().for_each(|value| samples.extend(value.to_be_bytes()));
}

/// The values of a data set of 32-bit floats.
///
/// # Errors
/// The length is not a multiple of 4 bytes.
pub fn float_values(samples: &[u8]) -> Result<Vec<f32>, FrameError> {
    let (values, rest) = samples.as_chunks();
    if !rest.is_empty() {
        return Err(FrameError::value("seqData", "expected a multiple of 4 bytes"));
    }
    Ok(values.iter().copied().map(f32::from_be_bytes).collect())
}

/// Appends the data set of 9-2LE: value and quality of each channel, 64 bytes.
pub fn write_light_edition(
    samples: &mut Vec<u8>,
    channels: &[LightEditionChannel; LIGHT_EDITION_CHANNELS],
) {
    for channel in channels {
        samples.extend(channel.value.to_be_bytes());
        samples.extend(channel.quality.to_be_bytes());
    }
}

/// The channels of a data set of 9-2LE.
///
/// # Errors
/// The length is not 64 bytes.
pub fn light_edition(
    samples: &[u8],
) -> Result<[LightEditionChannel; LIGHT_EDITION_CHANNELS], FrameError> {
    let (words, rest) = samples.as_chunks::<4>();
    let (pairs, odd) = words.as_chunks::<2>();
    let channels: Option<&[[[u8; 4]; 2]; LIGHT_EDITION_CHANNELS]> = pairs.try_into().ok();
    match channels {
        Some(channels) if rest.is_empty() && odd.is_empty() => {
            Ok(channels.map(|[value, quality]| LightEditionChannel {
                value: i32::from_be_bytes(value),
                quality: u32::from_be_bytes(quality),
            }))
        }
        _ => Err(FrameError::value("seqData", "expected the 64 bytes of the data set of 9-2LE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_are_read_as_written() {
        let mut samples = Vec::new();
        write_float_values(&mut samples, &[1.5, -0.25]);
        assert_eq!(float_values(&samples), Ok(vec![1.5, -0.25]));
        assert!(float_values(&samples[1..]).is_err());
        let mut channels = [LightEditionChannel::default(); LIGHT_EDITION_CHANNELS];
        channels[7] = LightEditionChannel { value: -70_711, quality: 0x2000 };
        let mut samples = Vec::new();
        write_light_edition(&mut samples, &channels);
        assert_eq!(samples.len(), 64);
        assert_eq!(light_edition(&samples), Ok(channels));
        assert!(light_edition(&samples[..63]).is_err());
    }
}
