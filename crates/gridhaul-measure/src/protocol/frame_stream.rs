//! Streams of Sampled Values and GOOSE: both ends together, or alone on different machines.

use std::net::IpAddr;

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::Clock;
use gridhaul_protocols::goose::RetransmissionSchedule;
use gridhaul_protocols::settings::{FrameContent, FrameStream, Retransmission, Vlan};

use super::{
    DataSet, FrameIdentity, GooseControlBlock, Protocol, ProtocolError, Publisher, ReceivingEnd,
    SampledValueStream,
};
use crate::place::Site;

/// `APPID`s, each in the range of its protocol (IEC 61850-8-1 and 9-2, annex C).
const SAMPLED_VALUES_APPLICATION: u16 = 0x4000;
const GOOSE_APPLICATION: u16 = 0x1000;

/// The protocol between two ends of one network.
#[must_use]
pub(crate) fn protocol(stream: &FrameStream) -> Box<dyn Protocol> {
    match stream.content {
        FrameContent::SampledValues { light_edition } => {
            Box::new(sampled_values(stream, light_edition))
        }
        FrameContent::Goose { retransmission } => Box::new(goose(stream, retransmission)),
    }
}

/// The end that sends through a device of this machine.
///
/// # Errors
/// The socket cannot be opened.
pub(crate) fn publisher(
    stream: &FrameStream,
    device: &str,
    clock: Clock,
) -> Result<Box<dyn Publisher>, ProtocolError> {
    let site = Site::on_device(device);
    Ok(match stream.content {
        FrameContent::SampledValues { light_edition } => {
            Box::new(sampled_values(stream, light_edition).publisher(&site)?)
        }
        FrameContent::Goose { retransmission } => {
            Box::new(goose(stream, retransmission).publisher(&site, clock)?)
        }
    })
}

/// The end that receives from a device of this machine, whose address only identifies it.
///
/// # Errors
/// The socket cannot be opened.
pub(crate) fn receiver(
    stream: &FrameStream,
    device: &str,
    address: IpAddr,
    clock: Clock,
) -> Result<ReceivingEnd, ProtocolError> {
    let place = (&Site::on_device(device), clock, false);
    let subscriber = match stream.content {
        FrameContent::SampledValues { light_edition } => {
            Box::new(sampled_values(stream, light_edition).subscriber(place)?) as _
        }
        FrameContent::Goose { retransmission } => {
            Box::new(goose(stream, retransmission).subscriber(place)?) as _
        }
    };
    Ok(ReceivingEnd { subscriber, address: (address, 0).into() })
}

fn sampled_values(stream: &FrameStream, light_edition: Option<u16>) -> SampledValueStream {
    let data_set =
        light_edition.map_or(DataSet::Raw, |per_second| DataSet::LightEdition { per_second });
    let identity = identity(stream, SAMPLED_VALUES_APPLICATION);
    SampledValueStream { identity, id: "gridhaul".into(), data_set }
}

fn goose(stream: &FrameStream, retransmission: Option<Retransmission>) -> GooseControlBlock {
    GooseControlBlock {
        identity: identity(stream, GOOSE_APPLICATION),
        reference: "gridhaul/LLN0$GO$gcb".into(),
        retransmission: retransmission.map(|Retransmission { shortest, longest }| {
            RetransmissionSchedule { shortest, factor: 2.0, longest }
        }),
    }
}

fn identity(stream: &FrameStream, application: u16) -> FrameIdentity {
    let tag = |Vlan { id, priority }| VlanTag { id, priority, ..VlanTag::default() };
    FrameIdentity { vlan: stream.vlan.map(tag), application }
}
