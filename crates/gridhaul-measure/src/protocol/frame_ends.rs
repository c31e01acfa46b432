//! Ends of Sampled Values and GOOSE, together or on different machines.

use std::net::IpAddr;

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::Clock;
use gridhaul_protocols::goose::RetransmissionSchedule;

use super::{
    DataSet, FrameIdentity, GooseControlBlock, Protocol, ProtocolError, Publisher, ReceivingEnd,
    SampledValueStream,
};
use crate::place::Site;
use crate::settings::{FrameContent, FrameStream, Vlan};

/// `APPID`s, each in the range of its protocol (IEC 61850-8-1 and 9-2, annex C).
const SAMPLED_VALUES_APPLICATION: u16 = 0x4000;
const GOOSE_APPLICATION: u16 = 0x1000;

impl FrameStream {
    /// The protocol between two ends of one network.
    #[must_use]
    pub fn protocol(&self) -> Box<dyn Protocol> {
        match self.content {
            FrameContent::SampledValues { light_edition } => {
                Box::new(self.sampled_values(light_edition))
            }
            FrameContent::Goose { .. } => Box::new(self.goose()),
        }
    }

    /// The end that sends through a device of this machine.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn publisher(
        &self,
        device: &str,
        clock: Clock,
    ) -> Result<Box<dyn Publisher>, ProtocolError> {
        let site = Site::on_device(device);
        Ok(match self.content {
            FrameContent::SampledValues { light_edition } => {
                Box::new(self.sampled_values(light_edition).publisher(&site)?)
            }
            FrameContent::Goose { .. } => Box::new(self.goose().publisher(&site, clock)?),
        })
    }

    /// The end that receives from a device of this machine, whose address only identifies it.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn receiver(
        &self,
        device: &str,
        address: IpAddr,
        clock: Clock,
    ) -> Result<ReceivingEnd, ProtocolError> {
        let place = (&Site::on_device(device), clock, false);
        let subscriber = match self.content {
            FrameContent::SampledValues { light_edition } => {
                Box::new(self.sampled_values(light_edition).subscriber(place)?) as _
            }
            FrameContent::Goose { .. } => Box::new(self.goose().subscriber(place)?) as _,
        };
        Ok(ReceivingEnd { subscriber, address: (address, 0).into() })
    }

    fn sampled_values(&self, light_edition: Option<u16>) -> SampledValueStream {
        let data_set =
            light_edition.map_or(DataSet::Raw, |per_second| DataSet::LightEdition { per_second });
        let identity = self.identity(SAMPLED_VALUES_APPLICATION);
        SampledValueStream { identity, id: "gridhaul".into(), data_set }
    }

    fn goose(&self) -> GooseControlBlock {
        let retransmission = match self.content {
            FrameContent::Goose { retransmission } => retransmission,
            FrameContent::SampledValues { .. } => None,
        };
        GooseControlBlock {
            identity: self.identity(GOOSE_APPLICATION),
            reference: "gridhaul/LLN0$GO$gcb".into(),
            retransmission: retransmission.map(|it| RetransmissionSchedule {
                shortest: it.shortest,
                factor: 2.0,
                longest: it.longest,
            }),
        }
    }

    fn identity(&self, application: u16) -> FrameIdentity {
        let tag = |Vlan { id, priority }| VlanTag { id, priority, ..VlanTag::default() };
        FrameIdentity { vlan: self.vlan.map(tag), application }
    }
}
