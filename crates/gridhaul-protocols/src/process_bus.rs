//! Frames of the process bus: Sampled Values (IEC 61850-9-2) and GOOSE (IEC 61850-8-1).
//!
//! The codec is strict and bounded: elements in the order of the standard, definite lengths of at
//! most 65,535 bytes, and no bytes after the last element of a PDU. Encoding has the shortest
//! lengths. The codec performs no I/O; a packet socket sends and receives the frames.
//!
//! ```
//! use gridhaul_protocols::iec61850::Application;
//! use gridhaul_protocols::process_bus::{Frame, FrameAddress, Pdu};
//! use gridhaul_protocols::sampled_values::{Asdu, SampledValues, Synchronisation};
//!
//! let asdu = Asdu {
//!     id: "MU01".into(),
//!     data_set: None,
//!     sample_count: 0,
//!     revision: 1,
//!     refresh_time: None,
//!     synchronisation: Synchronisation::Global,
//!     sample_rate: None,
//!     samples: vec![0; 64],
//!     sample_mode: None,
//! };
//! let frame = Frame {
//!     address: FrameAddress { destination: [1, 12, 205, 4, 0, 1], ..FrameAddress::default() },
//!     application: Application { id: 0x4000, simulated: false },
//!     pdu: Pdu::SampledValues(SampledValues { asdus: vec![asdu] }),
//! };
//! let mut bytes = Vec::new();
//! frame.encode(&mut bytes)?;
//! assert_eq!(Frame::decode(&bytes)?, frame);
//! # Ok::<(), gridhaul_protocols::iec61850::FrameError>(())
//! ```

use gridhaul_core::wire::{EtherType, EthernetFrame, EthernetHeader, VlanTag};

use crate::goose::GoosePdu;
use crate::iec61850::{Application, FrameError};
use crate::sampled_values::SampledValues;

/// EtherType of Sampled Values.
pub const SAMPLED_VALUES: EtherType = EtherType(0x88ba);

/// EtherType of GOOSE.
pub const GOOSE: EtherType = EtherType(0x88b8);

/// Addresses of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameAddress {
    /// MAC address of the receivers: 01-0C-CD-04-xx-xx for Sampled Values, 01-0C-CD-01-xx-xx for
    /// GOOSE (IEC 61850-8-1 and 9-2, annex B).
    pub destination: [u8; 6],
    /// MAC address of the sender.
    pub source: [u8; 6],
    /// VLAN tag; `None` for a frame without tag, and for a received one whose tag the kernel has
    /// removed.
    pub vlan: Option<VlanTag>,
}

/// A frame of the process bus.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Addresses and VLAN tag.
    pub address: FrameAddress,
    /// Identity of the sending application.
    pub application: Application,
    /// Contents.
    pub pdu: Pdu,
}

/// Contents of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Pdu {
    /// Samples.
    SampledValues(SampledValues),
    /// An event, or the retransmission of one.
    Goose(GoosePdu),
}

/// EtherType of a frame, after its VLAN tags; `None` of a truncated frame.
#[must_use]
pub fn ether_type(frame: &[u8]) -> Option<EtherType> {
    EthernetFrame::parse(frame).ok().map(|frame| frame.header.ether_type)
}

impl Frame {
    /// Appends the frame, without frame check sequence and without the padding of a short frame.
    ///
    /// # Errors
    /// A value that the standard does not permit, such as a text of more than 129 characters. `out`
    /// is unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let mut pdu = Vec::new();
        let ether_type = match &self.pdu {
            Pdu::SampledValues(samples) => samples.write(&mut pdu).map(|()| SAMPLED_VALUES)?,
            Pdu::Goose(goose) => goose.write(&mut pdu).map(|()| GOOSE)?,
        };
        let mut payload = Vec::new();
        self.application.write(&mut payload, &pdu)?;
        let FrameAddress { destination, source, vlan } = self.address;
        EthernetHeader { destination, source, tags: [vlan, None], ether_type }.write(out);
        out.extend(payload);
        Ok(())
    }

    /// Parses a frame with at most one VLAN tag and without frame check sequence.
    ///
    /// # Errors
    /// The frame belongs to another protocol, is truncated, or contains an element or value that is
    /// not permitted.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let EthernetFrame { header, payload } = EthernetFrame::parse(bytes)?;
        if header.ether_type != SAMPLED_VALUES && header.ether_type != GOOSE {
            return Err(FrameError::EtherType(header.ether_type.0));
        }
        let [vlan, None] = header.tags else {
            return Err(FrameError::value("VLAN tag", "expected at most one tag"));
        };
        let (application, pdu) = Application::parse(payload)?;
        let pdu = if header.ether_type == SAMPLED_VALUES {
            Pdu::SampledValues(SampledValues::parse(pdu)?)
        } else {
            Pdu::Goose(GoosePdu::parse(pdu)?)
        };
        let (destination, source) = (header.destination, header.source);
        Ok(Self { address: FrameAddress { destination, source, vlan }, application, pdu })
    }
}
