//! The header of both protocols after the EtherType (IEC 61850-8-1 and 9-2, annex C).

use super::FrameError;

/// Bytes of the header: APPID, Length, Reserved 1 and Reserved 2.
pub const APPLICATION_HEADER_BYTES: usize = 8;

/// Longest value of the field Length: the payload of an Ethernet frame.
const LONGEST: usize = 1_500;

/// Simulation flag: the most significant bit of Reserved 1.
const SIMULATED: u16 = 0x8000;

/// Identity of the sending application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Application {
    /// APPID: 0x0000 to 0x3fff for GOOSE, 0x4000 to 0x7fff for Sampled Values.
    pub id: u16,
    /// Whether the frame comes from a simulator.
    pub simulated: bool,
}

impl Application {
    /// Appends header and PDU.
    pub(crate) fn write(self, out: &mut Vec<u8>, pdu: &[u8]) -> Result<(), FrameError> {
        let length = APPLICATION_HEADER_BYTES + pdu.len();
        if length > LONGEST {
            return Err(FrameError::value("Length", "header and PDU are longer than 1500 bytes"));
        }
        out.extend(self.id.to_be_bytes());
        out.extend((length as u16).to_be_bytes());
        out.extend((if self.simulated { SIMULATED } else { 0 }).to_be_bytes());
        out.extend([0, 0]);
        out.extend_from_slice(pdu);
        Ok(())
    }

    /// Header and PDU. The bytes after the PDU are padding of a short frame.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let truncated =
            |expected| FrameError::Truncated { element: "Length", expected, found: bytes.len() };
        let header: [u8; APPLICATION_HEADER_BYTES] = bytes
            .get(..APPLICATION_HEADER_BYTES)
            .and_then(|header| header.try_into().ok())
            .ok_or_else(|| truncated(APPLICATION_HEADER_BYTES))?;
        let [i0, i1, l0, l1, r0, r1, _, _] = header;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if !(APPLICATION_HEADER_BYTES..=LONGEST).contains(&length) {
            return Err(FrameError::value("Length", "expected 8 to 1500 bytes"));
        }
        let pdu = bytes.get(APPLICATION_HEADER_BYTES..length).ok_or_else(|| truncated(length))?;
        // The other bits of Reserved 1 and Reserved 2 belong to the security extension (IEC
        // 62351-6).
        let simulated = u16::from_be_bytes([r0, r1]) & SIMULATED != 0;
        Ok((Self { id: u16::from_be_bytes([i0, i1]), simulated }, pdu))
    }
}
