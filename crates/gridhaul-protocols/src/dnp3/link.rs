//! Data link and transport function of DNP3 (IEEE 1815-2012, clauses 9 and 8).

use super::invalid;
use crate::endpoint::EndpointError;

/// Bytes of the header of a link frame: start, length, control, destination, source, CRC (clause
/// 9.2).
const HEADER: usize = 10;

/// Bytes of a block, after which a CRC follows (clause 9.2.4).
const BLOCK: usize = 16;

/// Bytes of the application layer in a frame: 250 of user data without the transport header (clause
/// 8.2).
pub(super) const SEGMENT: usize = 249;

/// Control field: primary station, unconfirmed user data (table 9-1); the bit of the direction is
/// set by a master.
const USER_DATA: u8 = 0x44;
const FROM_MASTER: u8 = 0x80;
const PRIMARY: u8 = 0x40;

/// Functions of a primary station that want an answer (table 9-1), and answers (table 9-2).
const RESET_LINK_STATES: u8 = 0;
const TEST_LINK_STATES: u8 = 2;
const CONFIRMED_USER_DATA: u8 = 3;
const UNCONFIRMED_USER_DATA: u8 = 4;
const REQUEST_LINK_STATUS: u8 = 9;
const ACK: u8 = 0;
const LINK_STATUS: u8 = 11;
const NOT_SUPPORTED: u8 = 15;

/// Transport header: final and first segment, and a sequence number of six bits (clause 8.2.1).
const FIN: u8 = 0x80;
const FIR: u8 = 0x40;

/// Data link addresses, as small as those in examples of the standard.
const MASTER: u16 = 1;
const OUTSTATION: u16 = 10;

/// Writes a fragment of the application layer as frames. `sequence` is the number of the next
/// segment.
pub(super) fn write(output: &mut Vec<u8>, fragment: &[u8], is_master: bool, sequence: &mut u8) {
    let count = fragment.len().div_ceil(SEGMENT);
    for (number, segment) in fragment.chunks(SEGMENT).enumerate() {
        let first = if number == 0 { FIR } else { 0 };
        let last = if number + 1 == count { FIN } else { 0 };
        let mut data = vec![first | last | *sequence];
        data.extend(segment);
        *sequence = (*sequence + 1) & 0x3f;
        write_frame(output, USER_DATA, &data, is_master);
    }
}

/// Writes the answer to a request of the link layer.
pub(super) fn write_answer(output: &mut Vec<u8>, function: u8, is_master: bool) {
    write_frame(output, function, &[], is_master);
}

fn write_frame(output: &mut Vec<u8>, control: u8, data: &[u8], is_master: bool) {
    let (control, to, from) = if is_master {
        (control | FROM_MASTER, OUTSTATION, MASTER)
    } else {
        (control, MASTER, OUTSTATION)
    };
    // The length counts control, addresses and user data, without CRCs.
    let mut header = vec![0x05, 0x64, 5 + data.len() as u8, control];
    header.extend([to, from].map(u16::to_le_bytes).concat());
    for block in std::iter::once(&header[..]).chain(data.chunks(BLOCK)) {
        output.extend(block);
        output.extend(crc(block).to_le_bytes());
    }
}

/// Bytes of the frame at the start of the input; `None` if they are not known yet.
pub(super) fn frame_length(input: &[u8]) -> Result<Option<usize>, EndpointError> {
    match *input {
        [] | [0x05] | [0x05, 0x64] => Ok(None),
        [0x05, 0x64, length @ 5..=255, ..] => {
            let data = usize::from(length) - 5;
            Ok(Some(HEADER + data + 2 * data.div_ceil(BLOCK)))
        }
        _ => Err(invalid("a frame without start or with a length below 5".into())),
    }
}

/// Segments of a fragment that is not complete.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    fragment: Vec<u8>,
    /// Number of the next segment; `None` before the first one.
    expected: Option<u8>,
}

/// Consequence of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// A fragment that is complete.
    pub fragment: Option<Vec<u8>>,
    /// Function of the answer that the link layer of the other role awaits.
    pub answer: Option<u8>,
}

impl Reassembly {
    /// Reads a whole frame of the other role.
    pub(super) fn read(
        &mut self,
        frame: &[u8],
        is_master: bool,
    ) -> Result<Contents, EndpointError> {
        let (header, blocks) = frame.split_at(HEADER);
        let mut data = Vec::new();
        for block in std::iter::once(header).chain(blocks.chunks(BLOCK + 2)) {
            let (contents, sum) = block.split_at(block.len() - 2);
            if crc(contents).to_le_bytes() != sum {
                return Err(invalid("a block with a wrong CRC".into()));
            }
            data.extend(contents);
        }
        let control = data[3];
        if (control & FROM_MASTER == 0) != is_master {
            return Err(invalid(format!("a frame of the wrong direction, {control:#04x}")));
        }
        if control & PRIMARY == 0 {
            // Answers of the link layer: this end makes no requests.
            return Ok(Contents::default());
        }
        // Masters use requests of the link layer to check whether a connection is alive (clause
        // 13.2.3.1).
        let answer = match control & 0xf {
            UNCONFIRMED_USER_DATA => None,
            RESET_LINK_STATES | TEST_LINK_STATES | CONFIRMED_USER_DATA => Some(ACK),
            REQUEST_LINK_STATUS => Some(LINK_STATUS),
            _ => Some(NOT_SUPPORTED),
        };
        if !matches!(control & 0xf, UNCONFIRMED_USER_DATA | CONFIRMED_USER_DATA) {
            return Ok(Contents { fragment: None, answer });
        }
        let Some((&transport, segment)) = data[HEADER - 2..].split_first() else {
            return Err(invalid("a frame without transport header".into()));
        };
        let number = transport & 0x3f;
        if transport & FIR != 0 {
            self.fragment.clear();
        } else if self.expected != Some(number) {
            return Err(invalid("a segment out of order".into()));
        }
        self.fragment.extend(segment);
        if self.fragment.len() > super::FRAGMENT_MAX {
            return Err(invalid(format!("a fragment above {} B", super::FRAGMENT_MAX)));
        }
        let is_last = transport & FIN != 0;
        self.expected = (!is_last).then_some((number + 1) & 0x3f);
        let fragment = is_last.then(|| std::mem::take(&mut self.fragment));
        Ok(Contents { fragment, answer })
    }
}

/// CRC of the data link (clause 9.2.4): polynomial 0x3d65 with reflected bits, complemented.
fn crc(bytes: &[u8]) -> u16 {
    !bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(
            crc ^ u16::from(byte),
            |crc, _| {
                if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xa6bc }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_catalogue() {
        // CRC-16/DNP: the check value of "123456789".
        assert_eq!(crc(b"123456789"), 0xea82);
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let mut frame = Vec::new();
        write(&mut frame, &[7; 40], false, &mut 0);
        let whole = Contents { fragment: Some(vec![7; 40]), answer: None };
        assert_eq!(Reassembly::default().read(&frame, true), Ok(whole));
        for bit in 0..8 * frame.len() {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_read = frame_length(&flipped) == Ok(Some(flipped.len()))
                && Reassembly::default().read(&flipped, true).is_ok();
            assert!(!is_read, "bit {bit}");
        }
    }
}
