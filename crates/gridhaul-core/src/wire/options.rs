//! The options of a TCP header.

use super::WireError;
use crate::tcp::{OneWayDelay, SackBlocks};

/// The options of a TCP header. The last one of several options of the same kind counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions<'a> {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale: the shift count (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps: value and echo reply (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// The option of TCP-MEDX ([`OneWayDelay`]): send time and delay.
    pub one_way_delay: Option<(u32, u32)>,
    /// Selective acknowledgements (RFC 2018, section 3).
    pub sack: SackBlocks,
    /// All other options, unchanged.
    pub unknown: UnknownOptions<'a>,
}

/// The options of a header that the codec does not interpret.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownOptions<'a> {
    /// Options up to the first malformed one; known kinds are skipped.
    area: &'a [u8],
}

/// Maximum length of the options: the data offset is limited to 15 words.
pub(super) const OPTIONS_MAX: usize = 40;

// Kinds (RFC 9293, section 3.2; RFC 7323; RFC 2018).
pub(super) const END: u8 = 0;
pub(super) const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl<'a> TcpOptions<'a> {
    /// Parses the bytes between the fixed part of a TCP header and its payload.
    ///
    /// # Errors
    /// [`WireError::OptionLength`].
    pub fn parse(area: &'a [u8]) -> Result<Self, WireError> {
        let mut options = Self { unknown: UnknownOptions { area }, ..Self::default() };
        for option in RawOptions(area) {
            options.read(option?)?;
        }
        Ok(options)
    }

    /// Parses the options before one whose length exceeds the header or is too short for an option,
    /// without those that have another length than their kind: the options that Linux reads
    /// (`tcp_parse_options`). RFC 9293, section 3.1, leaves the treatment of an illegal length to
    /// the implementation (MUST-7).
    #[must_use]
    pub fn parse_well_formed(area: &'a [u8]) -> Self {
        let mut options = Self { unknown: UnknownOptions { area }, ..Self::default() };
        for option in RawOptions(area).map_while(Result::ok) {
            let _ = options.read(option);
        }
        options
    }

    /// Reads an option: kind, and all bytes.
    fn read(&mut self, (kind, option): (u8, &[u8])) -> Result<(), WireError> {
        let error = WireError::OptionLength { kind, length: option.len() as u8 };
        let value = &option[2..];
        match (kind, value.len()) {
            (MSS, 2) => self.mss = Some(u16::from_be_bytes([value[0], value[1]])),
            (WINDOW_SCALE, 1) => self.window_scale = Some(value[0]),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (SACK, 8 | 16 | 24 | 32) => {
                self.sack = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    let (left, right) = pair(block);
                    self.sack.push(left, right);
                }
            }
            (TIMESTAMPS, 8) => self.timestamps = Some(pair(value)),
            (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => return Err(error),
            _ if is_one_way_delay(option) => self.one_way_delay = Some(pair(&value[2..])),
            _ => {}
        }
        Ok(())
    }

    /// Writes the options, padded to whole words. Values of four or eight bytes are aligned as
    /// recommended by RFC 7323, appendix A; the padding for the alignment is omitted if the space
    /// does not suffice.
    ///
    /// # Errors
    /// [`WireError::OptionsTooLong`].
    pub(super) fn encode(&self) -> Result<Area, WireError> {
        let aligned = self.encode_with(true);
        let area = if aligned.len > OPTIONS_MAX { self.encode_with(false) } else { aligned };
        if area.len > OPTIONS_MAX { Err(WireError::OptionsTooLong(area.len)) } else { Ok(area) }
    }

    fn encode_with(&self, aligned: bool) -> Area {
        let mut area = Area { bytes: [0; OPTIONS_MAX], len: 0 };
        let padding: &[u8] = if aligned { &[NO_OPERATION; 2] } else { &[] };
        if let Some(mss) = self.mss {
            area.push(&[MSS, 4]);
            area.push(&mss.to_be_bytes());
        }
        if let Some(scale) = self.window_scale {
            area.push(&[WINDOW_SCALE, 3, scale]);
            area.push(&padding[padding.len() / 2..]);
        }
        if self.sack_permitted {
            area.push(&[SACK_PERMITTED, 2]);
            area.push(padding);
        }
        if let Some(numbers) = self.timestamps {
            area.push(padding);
            area.push(&[TIMESTAMPS, 10]);
            area.push_pair(numbers.0, numbers.1);
        }
        if let Some(numbers) = self.one_way_delay {
            area.push(&[OneWayDelay::KIND, OneWayDelay::LEN]);
            area.push(&OneWayDelay::IDENTIFIER.to_be_bytes());
            area.push_pair(numbers.0, numbers.1);
        }
        if !self.sack.is_empty() {
            let blocks = self.sack.as_slice();
            area.push(padding);
            area.push(&[SACK, 2 + 8 * blocks.len() as u8]);
            for &block in blocks {
                area.push_pair(block.0, block.1);
            }
        }
        for option in self.unknown.iter() {
            area.push(option);
        }
        // The bytes after the last option are zero: end of option list (RFC 9293, section 3.2).
        area.len = area.len.next_multiple_of(4);
        area
    }
}

impl<'a> UnknownOptions<'a> {
    /// Options from their bytes: kind, length, value. Kinds with a field in [`TcpOptions`] are
    /// skipped.
    ///
    /// # Errors
    /// [`WireError::OptionLength`].
    pub fn new(area: &'a [u8]) -> Result<Self, WireError> {
        RawOptions(area).try_for_each(|option| option.map(|_| ()))?;
        Ok(Self { area })
    }

    /// Each option with its kind and length.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let options = RawOptions(self.area).map_while(Result::ok).map(|(_, option)| option);
        options.filter(|option| !is_known(option))
    }
}

impl PartialEq for UnknownOptions<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for UnknownOptions<'_> {}

/// A buffer for options.
#[derive(Debug)]
pub(super) struct Area {
    bytes: [u8; OPTIONS_MAX],
    /// May exceed the available space: then the last options are missing.
    len: usize,
}

impl Area {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }

    fn push_pair(&mut self, first: u32, second: u32) {
        self.push(&first.to_be_bytes());
        self.push(&second.to_be_bytes());
    }
}

/// Iterates over the options of an area: kind, and all bytes of the option. Ends after an error.
#[derive(Debug, Clone)]
pub(super) struct RawOptions<'a>(pub &'a [u8]);

impl<'a> Iterator for RawOptions<'a> {
    type Item = Result<(u8, &'a [u8]), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [NO_OPERATION, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let (&kind, after) = self.0.split_first()?;
        if kind == END {
            self.0 = &[];
            return None;
        }
        let length = after.first().copied().unwrap_or(0);
        match self.0.split_at_checked(usize::from(length)) {
            Some((option, rest)) if length >= 2 => {
                self.0 = rest;
                Some(Ok((kind, option)))
            }
            _ => {
                self.0 = &[];
                Some(Err(WireError::OptionLength { kind, length }))
            }
        }
    }
}

fn is_known(option: &[u8]) -> bool {
    matches!(option[0], MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS)
        || is_one_way_delay(option)
}

/// RFC 6994, section 3: experiments share a kind and are distinguished by an identifier after the
/// length.
fn is_one_way_delay(option: &[u8]) -> bool {
    let [high, low] = OneWayDelay::IDENTIFIER.to_be_bytes();
    option.len() == usize::from(OneWayDelay::LEN)
        && option[..4] == [OneWayDelay::KIND, OneWayDelay::LEN, high, low]
}

/// Two numbers of four bytes each.
fn pair(bytes: &[u8]) -> (u32, u32) {
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (word(0), word(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(options: &TcpOptions<'_>) -> Vec<u8> {
        options.encode().unwrap().as_slice().to_vec()
    }

    #[test]
    fn one_way_delays_have_their_own_option() {
        let numbers = Some((0x0102_0304, 0x0506_0708));
        let timestamps = TcpOptions { timestamps: numbers, ..TcpOptions::default() };
        let medx = TcpOptions { one_way_delay: numbers, ..TcpOptions::default() };
        // RFC 7323: kind 8, length 10, after two bytes of padding. RFC 6994: kind 253, length 12,
        // identifier of the experiment.
        assert_eq!(encoded(&timestamps), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(encoded(&medx), [253, 12, 0x4d, 0x58, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn options_of_a_syn_are_aligned_to_words() {
        let options = TcpOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            ..TcpOptions::default()
        };
        assert_eq!(encoded(&options), [2, 4, 5, 180, 3, 3, 7, 1, 4, 2, 1, 1]);
    }

    #[test]
    fn options_without_padding_fit_where_aligned_ones_do_not() {
        let mut sack = SackBlocks::default();
        sack.push(1, 2);
        sack.push(3, 4);
        let options = TcpOptions {
            mss: Some(536),
            window_scale: Some(14),
            sack_permitted: true,
            timestamps: Some((1, 2)),
            sack,
            ..TcpOptions::default()
        };
        let bytes = encoded(&options);
        assert_eq!(bytes.len(), 40);
        let parsed = TcpOptions::parse(&bytes).unwrap();
        assert_eq!(TcpOptions { unknown: options.unknown, ..parsed }, options);
        sack.push(5, 6);
        let more = TcpOptions { sack, ..options };
        assert_eq!(more.encode().unwrap_err(), WireError::OptionsTooLong(48));
    }

    #[test]
    fn unknown_options_are_unchanged() {
        // Another experiment of the same kind as TCP-MEDX, a signature (RFC 2385), and bytes after
        // the end.
        let area = [1, 253, 4, 0xab, 0xcd, 2, 4, 1, 2, 19, 3, 9, 0, 77];
        let options = TcpOptions::parse(&area).unwrap();
        assert_eq!(options.mss, Some(0x0102));
        let unknown: Vec<_> = options.unknown.iter().collect();
        assert_eq!(unknown, [&[253, 4, 0xab, 0xcd][..], &[19, 3, 9]]);
        let bytes = encoded(&options);
        assert_eq!(bytes, [2, 4, 1, 2, 253, 4, 0xab, 0xcd, 19, 3, 9, 0]);
        assert_eq!(TcpOptions::parse(&bytes), Ok(options));
    }

    #[test]
    fn errors_of_wrong_lengths_report_the_option() {
        for (area, kind, length) in [
            (&[8, 9, 0, 0, 0, 0, 0, 0, 0][..], 8, 9),
            (&[2, 4, 1], 2, 4),
            (&[1, 1, 3], 3, 0),
            (&[30, 1, 0], 30, 1),
            (&[5, 2], 5, 2),
            (&[4, 3, 0], 4, 3),
        ] {
            let error = Err(WireError::OptionLength { kind, length });
            assert_eq!(TcpOptions::parse(area), error, "{area:?}");
        }
    }
}
