//! Ethernet II frames, with up to two VLAN tags.

use etherparse::{
    Ethernet2Header, Ethernet2HeaderSlice, SingleVlanHeader, SingleVlanHeaderSlice, VlanId, VlanPcp,
};

use super::{Layer, WireError};

/// The protocol of a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// RFC 894.
    pub const IPV4: Self = Self(0x0800);
    /// RFC 2464.
    pub const IPV6: Self = Self(0x86dd);
    const CUSTOMER_TAG: Self = Self(0x8100);
    const SERVICE_TAG: Self = Self(0x88a8);
}

/// A VLAN tag (IEEE 802.1Q, section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanTag {
    /// VLAN identifier, 12 bits.
    pub id: u16,
    /// Priority code point, 3 bits.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// A service tag (0x88a8) instead of a customer tag (0x8100).
    pub service: bool,
}

/// An Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetHeader {
    /// MAC address of the receiver.
    pub destination: [u8; 6],
    /// MAC address of the sender.
    pub source: [u8; 6],
    /// VLAN tags, the outer one first.
    pub tags: [Option<VlanTag>; 2],
    /// Protocol of the payload.
    pub ether_type: EtherType,
}

/// A parsed Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetFrame<'a> {
    /// Its header.
    pub header: EthernetHeader,
    /// The bytes after the header, including the padding of a short frame.
    pub payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Parses a frame without its frame check sequence. A third tag is part of the payload.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the header or a tag is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let truncated = |layer| {
            move |error: etherparse::err::LenError| WireError::Truncated {
                layer,
                expected: error.required_len,
                found: error.len,
            }
        };
        let outer = Ethernet2HeaderSlice::from_slice(bytes).map_err(truncated(Layer::Ethernet))?;
        let (mut kind, mut payload) =
            (EtherType(outer.ether_type().0), &bytes[Ethernet2Header::LEN..]);
        let mut tags = [None; 2];
        for place in &mut tags {
            if kind != EtherType::CUSTOMER_TAG && kind != EtherType::SERVICE_TAG {
                break;
            }
            let tag = SingleVlanHeaderSlice::from_slice(payload).map_err(truncated(Layer::Vlan))?;
            *place = Some(VlanTag {
                id: tag.vlan_identifier().value(),
                priority: tag.priority_code_point().value(),
                drop_eligible: tag.drop_eligible_indicator(),
                service: kind == EtherType::SERVICE_TAG,
            });
            kind = EtherType(tag.ether_type().0);
            payload = &payload[SingleVlanHeader::LEN..];
        }
        let header = EthernetHeader {
            destination: outer.destination(),
            source: outer.source(),
            tags,
            ether_type: kind,
        };
        Ok(Self { header, payload })
    }
}

impl EthernetHeader {
    /// Appends the header to a buffer, with the low 12 bits of the identifier and the low 3 bits of
    /// the priority of each tag.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        let tags = self.tags.iter().flatten();
        let following = tags.clone().skip(1).map(VlanTag::ether_type).chain([self.ether_type]);
        let outer = Ethernet2Header {
            source: self.source,
            destination: self.destination,
            ether_type: tags.clone().next().map_or(self.ether_type, VlanTag::ether_type).0.into(),
        };
        buffer.extend_from_slice(&outer.to_bytes());
        for (tag, following) in tags.zip(following) {
            let tag = SingleVlanHeader {
                pcp: VlanPcp::try_new(tag.priority & 0x7).unwrap_or(VlanPcp::ZERO),
                drop_eligible_indicator: tag.drop_eligible,
                vlan_id: VlanId::try_new(tag.id & 0xfff).unwrap_or(VlanId::ZERO),
                ether_type: following.0.into(),
            };
            buffer.extend_from_slice(&tag.to_bytes());
        }
    }
}

impl VlanTag {
    /// The tag protocol identifier.
    fn ether_type(&self) -> EtherType {
        if self.service { EtherType::SERVICE_TAG } else { EtherType::CUSTOMER_TAG }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(tags: [Option<VlanTag>; 2]) -> EthernetHeader {
        let (destination, source) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        EthernetHeader { destination, source, tags, ether_type: EtherType::IPV4 }
    }

    #[test]
    fn a_frame_is_parsed_as_written() {
        let tag = VlanTag { id: 0xabc, priority: 5, drop_eligible: true, service: false };
        let service = VlanTag { id: 7, service: true, ..VlanTag::default() };
        for (tags, len) in
            [([None, None], 14), ([Some(tag), None], 18), ([Some(service), Some(tag)], 22)]
        {
            let mut bytes = Vec::new();
            header(tags).write(&mut bytes);
            assert_eq!(bytes.len(), len);
            bytes.extend([1, 2, 3]);
            let frame = EthernetFrame::parse(&bytes).unwrap();
            assert_eq!((frame.header, frame.payload), (header(tags), &[1, 2, 3][..]));
            for end in 0..len {
                let cut = EthernetFrame::parse(&bytes[..end]);
                assert!(matches!(cut, Err(WireError::Truncated { .. })), "{end} bytes: {cut:?}");
            }
        }
    }

    #[test]
    fn a_tag_precedes_the_ether_type() {
        let mut bytes = Vec::new();
        let tag = VlanTag { id: 0xabc, priority: 5, drop_eligible: true, service: false };
        header([Some(tag), None]).write(&mut bytes);
        assert_eq!(bytes[12..], [0x81, 0x00, 0xba, 0xbc, 0x08, 0x00]);
    }
}
