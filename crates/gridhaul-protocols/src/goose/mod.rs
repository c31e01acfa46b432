//! GOOSE (IEC 61850-8-1): events that are retransmitted until the next event.
//!
//! ```
//! use gridhaul_protocols::goose::{GooseReceiver, Reception};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut receiver = GooseReceiver::default();
//! // stNum, sqNum, and timeAllowedtoLive in ms.
//! let event = receiver.handle_message(Instant::ZERO, 1, 0, 2_000);
//! assert_eq!(event, Reception::Event { events_lost: 0, messages_lost: 0 });
//! let again = receiver.handle_message(Instant::ZERO, 1, 1, 2_000);
//! assert_eq!(again, Reception::Retransmission { messages_lost: 0 });
//! ```

mod data;
mod publisher;
mod receiver;

pub use data::Data;
pub use publisher::{GooseMessage, GoosePublisher, RetransmissionSchedule};
pub use receiver::{GooseReceiver, Reception};

use crate::iec61850::ber::{
    BerReader, boolean, unsigned, visible_string, write, write_integer, write_nested,
    write_visible_string,
};
use crate::iec61850::{FrameError, UtcTime};

/// Longest reference: VisibleString (SIZE (0..129)) of edition 2.
const LONGEST_REFERENCE: usize = 129;

/// The PDU of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct GoosePdu {
    /// `gocbRef`: reference of the control block.
    pub control_block: String,
    /// `timeAllowedtoLive` in ms: the receiver expects the next message within this time.
    pub time_allowed_to_live_ms: u32,
    /// `datSet`: reference of the data set.
    pub data_set: String,
    /// `goID`: name of the application.
    pub id: Option<String>,
    /// `t`: time of the event.
    pub time: UtcTime,
    /// `stNum`: number of the event.
    pub state_number: u32,
    /// `sqNum`: number of the retransmission; 0 for the first message of an event.
    pub sequence_number: u32,
    /// `simulation`: the message comes from a simulator.
    pub simulation: bool,
    /// `confRev`: revision of the configuration.
    pub revision: u32,
    /// `ndsCom`: the control block needs commissioning.
    pub needs_commissioning: bool,
    /// `allData`: values of the data set.
    pub values: Vec<Data>,
}

impl GoosePdu {
    /// Appends the PDU: `goosePdu`, [APPLICATION 1]. Elements with their default value are written,
    /// as libiec61850 does.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        write_nested(out, 0x61, |pdu| {
            let text = |pdu: &mut Vec<u8>, tag, text: &str, element| {
                write_visible_string(pdu, tag, text, LONGEST_REFERENCE, element)
            };
            text(pdu, 0x80, &self.control_block, "gocbRef")?;
            write_integer(pdu, 0x81, i64::from(self.time_allowed_to_live_ms));
            text(pdu, 0x82, &self.data_set, "datSet")?;
            if let Some(id) = &self.id {
                text(pdu, 0x83, id, "goID")?;
            }
            write(pdu, 0x84, &self.time.to_bytes());
            write_integer(pdu, 0x85, i64::from(self.state_number));
            write_integer(pdu, 0x86, i64::from(self.sequence_number));
            write(pdu, 0x87, &[u8::from(self.simulation)]);
            write_integer(pdu, 0x88, i64::from(self.revision));
            write(pdu, 0x89, &[u8::from(self.needs_commissioning)]);
            write_integer(pdu, 0x8a, self.values.len() as i64);
            write_nested(pdu, 0xab, |all| self.values.iter().try_for_each(|value| value.write(all)))
        })
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut outer = BerReader::new(bytes);
        let mut pdu = BerReader::new(outer.element(0x61, "goosePdu")?);
        outer.finish("goosePdu")?;
        let text = |contents, element| visible_string(contents, LONGEST_REFERENCE, element);
        let mut parsed = Self {
            control_block: text(pdu.element(0x80, "gocbRef")?, "gocbRef")?,
            time_allowed_to_live_ms: number(&mut pdu, 0x81, "timeAllowedtoLive")?,
            data_set: text(pdu.element(0x82, "datSet")?, "datSet")?,
            id: pdu.optional(0x83, "goID")?.map(|contents| text(contents, "goID")).transpose()?,
            time: UtcTime::from_bytes(pdu.array(0x84, "t")?),
            state_number: number(&mut pdu, 0x85, "stNum")?,
            sequence_number: number(&mut pdu, 0x86, "sqNum")?,
            simulation: flag(&mut pdu, 0x87, "simulation")?,
            revision: number(&mut pdu, 0x88, "confRev")?,
            needs_commissioning: flag(&mut pdu, 0x89, "ndsCom")?,
            values: Vec::new(),
        };
        let count = number(&mut pdu, 0x8a, "numDatSetEntries")?;
        let mut values = BerReader::new(pdu.element(0xab, "allData")?);
        while !values.is_empty() {
            parsed.values.push(Data::parse(&mut values)?);
        }
        // Reserved for a digital signature; its contents are not defined.
        pdu.optional(0x8c, "security")?;
        pdu.finish("goosePdu")?;
        if usize::try_from(count) != Ok(parsed.values.len()) {
            let reason = "expected the number of values in allData";
            return Err(FrameError::value("numDatSetEntries", reason));
        }
        Ok(parsed)
    }
}

fn number(pdu: &mut BerReader<'_>, tag: u8, element: &'static str) -> Result<u32, FrameError> {
    unsigned(pdu.element(tag, element)?, element)
}

/// A BOOLEAN whose default value is false.
fn flag(pdu: &mut BerReader<'_>, tag: u8, element: &'static str) -> Result<bool, FrameError> {
    pdu.optional(tag, element)?.map_or(Ok(false), |contents| boolean(contents, element))
}
