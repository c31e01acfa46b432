//! Sampled Values (IEC 61850-9-2): one or more sets of samples for each frame.
//!
//! ```
//! use gridhaul_protocols::sampled_values::SampleCounter;
//!
//! let mut counter = SampleCounter::new();
//! let numbers = [65_534, 65_535, 0].map(|count| counter.extend(count));
//! assert_eq!(numbers, [65_534, 65_535, 65_536].map(Some));
//! ```

mod counter;
mod data_set;

pub use counter::SampleCounter;
pub use data_set::{
    LIGHT_EDITION_CHANNELS, LightEditionChannel, float_values, light_edition, write_float_values,
    write_light_edition,
};

use crate::iec61850::ber::{
    BerReader, unsigned, visible_string, write, write_integer, write_nested, write_visible_string,
};
use crate::iec61850::{FrameError, UtcTime};

/// Longest name of a stream or of a data set: VisibleString (SIZE (1..129)) of edition 2.
const LONGEST_NAME: usize = 129;

/// The PDU of a frame: its application service data units (ASDUs), at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampledValues {
    /// The sets of samples, the oldest first.
    pub asdus: Vec<Asdu>,
}

/// A set of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asdu {
    /// `svID`: name of the stream.
    pub id: String,
    /// `datSet`: reference of the data set.
    pub data_set: Option<String>,
    /// `smpCnt`: number of the sample; [`SampleCounter`] extends the 16 bits.
    pub sample_count: u16,
    /// `confRev`: revision of the configuration.
    pub revision: u32,
    /// `refrTm`: time of the refresh of the transmit buffer.
    pub refresh_time: Option<UtcTime>,
    /// `smpSynch`: source of the sampling clock.
    pub synchronisation: Synchronisation,
    /// `smpRate`: samples for each nominal period, or per second, according to `smpMod`.
    pub sample_rate: Option<u16>,
    /// The samples, in the encoding of the data set: see [`float_values`] and [`light_edition`].
    pub samples: Vec<u8>,
    /// `smpMod`: unit of the sample rate.
    pub sample_mode: Option<SampleMode>,
}

/// Source of the sampling clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronisation {
    /// Not synchronised.
    #[default]
    None,
    /// Synchronised with a local area clock.
    Local,
    /// Synchronised with a global area clock.
    Global,
    /// The identity of a local area clock: 5 to 254 (edition 2).
    Clock(u8),
}

/// Unit of the sample rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMode {
    /// Samples for each nominal period.
    PerPeriod,
    /// Samples per second.
    PerSecond,
    /// Seconds for each sample.
    SecondsPerSample,
}

impl SampledValues {
    /// Appends the PDU: `savPdu`, [APPLICATION 0].
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let count = u16::try_from(self.asdus.len()).ok().filter(|count| *count > 0);
        let count = count.ok_or(FrameError::value("noASDU", "expected 1 to 65535 ASDUs"))?;
        write_nested(out, 0x60, |pdu| {
            write_integer(pdu, 0x80, i64::from(count));
            write_nested(pdu, 0xa2, |asdus| {
                self.asdus
                    .iter()
                    .try_for_each(|asdu| write_nested(asdus, 0x30, |out| asdu.write(out)))
            })
        })
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut outer = BerReader::new(bytes);
        let mut pdu = BerReader::new(outer.element(0x60, "savPdu")?);
        outer.finish("savPdu")?;
        let count = unsigned(pdu.element(0x80, "noASDU")?, "noASDU")?;
        // Reserved for a digital signature; its contents are not defined.
        pdu.optional(0x81, "security")?;
        let mut sequence = BerReader::new(pdu.element(0xa2, "seqASDU")?);
        pdu.finish("savPdu")?;
        let mut asdus = Vec::new();
        while !sequence.is_empty() {
            asdus.push(Asdu::parse(BerReader::new(sequence.element(0x30, "ASDU")?))?);
        }
        if asdus.is_empty() || usize::try_from(count) != Ok(asdus.len()) {
            return Err(FrameError::value("noASDU", "expected the number of ASDUs, at least 1"));
        }
        Ok(Self { asdus })
    }
}

impl Asdu {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        write_visible_string(out, 0x80, &self.id, LONGEST_NAME, "svID")?;
        if let Some(data_set) = &self.data_set {
            write_visible_string(out, 0x81, data_set, LONGEST_NAME, "datSet")?;
        }
        write(out, 0x82, &self.sample_count.to_be_bytes());
        write(out, 0x83, &self.revision.to_be_bytes());
        if let Some(time) = self.refresh_time {
            write(out, 0x84, &time.to_bytes());
        }
        write(out, 0x85, &[self.synchronisation.to_byte()?]);
        if let Some(rate) = self.sample_rate {
            write(out, 0x86, &rate.to_be_bytes());
        }
        write(out, 0x87, &self.samples);
        if let Some(mode) = self.sample_mode {
            write(out, 0x88, &mode.number().to_be_bytes());
        }
        Ok(())
    }

    fn parse(mut asdu: BerReader<'_>) -> Result<Self, FrameError> {
        let name = |contents, element| visible_string(contents, LONGEST_NAME, element);
        let parsed = Self {
            id: name(asdu.element(0x80, "svID")?, "svID")?,
            data_set: asdu
                .optional(0x81, "datSet")?
                .map(|contents| name(contents, "datSet"))
                .transpose()?,
            sample_count: u16::from_be_bytes(asdu.array(0x82, "smpCnt")?),
            revision: u32::from_be_bytes(asdu.array(0x83, "confRev")?),
            refresh_time: asdu.optional_array(0x84, "refrTm")?.map(UtcTime::from_bytes),
            synchronisation: Synchronisation::from_byte(asdu.array(0x85, "smpSynch")?)?,
            sample_rate: asdu.optional_array(0x86, "smpRate")?.map(u16::from_be_bytes),
            samples: asdu.element(0x87, "seqData")?.to_vec(),
            sample_mode: asdu
                .optional_array(0x88, "smpMod")?
                .map(|bytes| SampleMode::from_number(u16::from_be_bytes(bytes)))
                .transpose()?,
        };
        // Identity of the clock (IEC 61869-9); not evaluated.
        asdu.optional(0x89, "gmidData")?;
        asdu.finish("ASDU")?;
        Ok(parsed)
    }
}

impl Synchronisation {
    const fn to_byte(self) -> Result<u8, FrameError> {
        match self {
            Self::None => Ok(0),
            Self::Local => Ok(1),
            Self::Global => Ok(2),
            Self::Clock(identity @ 5..=254) => Ok(identity),
            Self::Clock(_) => {
                Err(FrameError::value("smpSynch", "the identity of a clock is from 5 to 254"))
            }
        }
    }

    const fn from_byte([byte]: [u8; 1]) -> Result<Self, FrameError> {
        match byte {
            0 => Ok(Self::None),
            1 => Ok(Self::Local),
            2 => Ok(Self::Global),
            5..=254 => Ok(Self::Clock(byte)),
            _ => Err(FrameError::value("smpSynch", "expected 0 to 2, or 5 to 254")),
        }
    }
}

impl SampleMode {
    const fn number(self) -> u16 {
        match self {
            Self::PerPeriod => 0,
            Self::PerSecond => 1,
            Self::SecondsPerSample => 2,
        }
    }

    const fn from_number(number: u16) -> Result<Self, FrameError> {
        match number {
            0 => Ok(Self::PerPeriod),
            1 => Ok(Self::PerSecond),
            2 => Ok(Self::SecondsPerSample),
            _ => Err(FrameError::value("smpMod", "expected 0 to 2")),
        }
    }
}
