//! Keys of the configuration as types of the relay.

use std::num::NonZeroU32;

use gridhaul_protocols::framing::{
    ByteOrder, Delimiter, DlmsWrapper, Iec104, LengthField, LengthFieldLayout, LengthPrefix,
    LengthWidth, MessageFraming,
};
use gridhaul_scenario::relay::{FieldOrder, MeterFraming};
use gridhaul_scenario::units::{Bytes, Duration};

/// Framing of a listener, and the gap that ends a message.
pub(super) fn framing_of(framing: &MeterFraming) -> (MessageFraming, Option<Duration>) {
    let size = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    match framing {
        MeterFraming::Stream => (MessageFraming::Stream, None),
        MeterFraming::DlmsWrapper => {
            (MessageFraming::DlmsWrapper(DlmsWrapper::new(u16::MAX)), None)
        }
        MeterFraming::Iec104 => (MessageFraming::Iec104(Iec104::default()), None),
        MeterFraming::LengthPrefix(prefix) => {
            let width =
                if prefix.width == 2 { LengthWidth::TwoBytes } else { LengthWidth::FourBytes };
            let order =
                if prefix.little_endian { ByteOrder::LittleEndian } else { ByteOrder::BigEndian };
            let prefix = LengthPrefix::new(width, order, size(prefix.maximum));
            (MessageFraming::LengthPrefix(prefix), None)
        }
        MeterFraming::LengthField(field) => {
            let order = match field.order {
                FieldOrder::BigEndian => ByteOrder::BigEndian,
                FieldOrder::LittleEndian => ByteOrder::LittleEndian,
            };
            let layout = LengthFieldLayout {
                offset: field.offset,
                size: field.size,
                order,
                adds: field.adds,
                maximum: size(field.maximum),
            };
            (MessageFraming::LengthField(LengthField::new(layout)), None)
        }
        MeterFraming::Delimiter(delimiter) => {
            let maximum = NonZeroU32::new(size(delimiter.maximum)).unwrap_or(NonZeroU32::MIN);
            (MessageFraming::Delimiter(Delimiter::new(delimiter.byte, maximum)), None)
        }
        MeterFraming::IdleGap(gap) => (MessageFraming::IdleGap, Some(*gap)),
    }
}
