//! Sampled Values (IEC 61850-9-2): each message is the `seqData` of a frame with one set of samples.

use rustix::time::{ClockId, clock_gettime};

use super::frame_link::{self, FrameIdentity, FrameReceiver, FrameSender};
use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, Refused, Subscriber,
};
use crate::frame::sampled_values::{Asdu, SampledValues, Synchronisation};
use crate::frame::{
    Application, Frame, FrameAddress, FrameError, Pdu, SAMPLED_VALUES, UtcTime, ether_type,
};
use crate::network::Sites;

/// Sampled Values with a data set of bytes, such as the raw floats that VILLASnode sends.
#[derive(Debug, Clone)]
pub struct SampledValueStream {
    /// VLAN and APPID.
    pub identity: FrameIdentity,
    /// Name of the stream, `svID`.
    pub id: String,
}

impl Protocol for SampledValueStream {
    fn name(&self) -> &'static str {
        "sv"
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        [self.identity.settings(), vec![("sv_id", self.id.clone())]].concat()
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let (sender, receiver) = frame_link::open(sites)?;
        let publisher = SampledValuePublisher {
            sender,
            identity: self.identity,
            id: self.id.clone(),
            count: 0,
            frame: Vec::new(),
        };
        let subscriber = SampledValueSubscriber { receiver, identity: self.identity };
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

#[derive(Debug)]
struct SampledValuePublisher {
    sender: FrameSender,
    identity: FrameIdentity,
    id: String,
    count: u16,
    /// The last frame, whose memory is used again.
    frame: Vec<u8>,
}

#[derive(Debug)]
struct SampledValueSubscriber {
    receiver: FrameReceiver,
    identity: FrameIdentity,
}

impl Publisher for SampledValuePublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        let asdu = Asdu {
            id: self.id.clone(),
            data_set: None,
            sample_count: self.count,
            revision: 1,
            refresh_time: Some(utc_now()),
            synchronisation: Synchronisation::None,
            sample_rate: None,
            samples: message.to_vec(),
            sample_mode: None,
        };
        let frame = Frame {
            address: FrameAddress {
                destination: [0x01, 0x0c, 0xcd, 0x04, 0x00, 0x01],
                source: SOURCE,
                vlan: self.identity.vlan,
            },
            application: Application { id: self.identity.application, simulated: false },
            pdu: Pdu::SampledValues(SampledValues { asdus: vec![asdu] }),
        };
        self.frame.clear();
        frame.encode(&mut self.frame).map_err(std::io::Error::other)?;
        self.count = self.count.wrapping_add(1);
        self.sender.send(&self.frame)
    }
}

impl Subscriber for SampledValueSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let until = self.receiver.clock().now() + RECEIVE_WAIT;
        while let Some(received) = self.receiver.receive(until)? {
            if ether_type(received.bytes) != Some(SAMPLED_VALUES) {
                continue;
            }
            match Frame::decode(received.bytes) {
                Ok(Frame { application, .. }) if application.id != self.identity.application => {}
                Ok(Frame { pdu: Pdu::SampledValues(pdu), .. })
                    if received.vlan == self.identity.vlan =>
                {
                    message.clear();
                    pdu.asdus.iter().for_each(|asdu| message.extend_from_slice(&asdu.samples));
                    return Ok(Received::Message(received.times));
                }
                // A frame that cannot be parsed, or has another tag, is a corrupt message: its check sum is wrong.
                Ok(_)
                | Err(FrameError::Truncated { .. } | FrameError::Tag { .. })
                | Err(FrameError::Trailing { .. } | FrameError::Value { .. }) => {
                    message.clear();
                    return Ok(Received::Message(received.times));
                }
                Err(FrameError::Ethernet(_) | FrameError::EtherType(_)) => {}
            }
        }
        Ok(Received::Nothing)
    }
}

/// Source address of frames: locally administered.
pub(super) const SOURCE: [u8; 6] = [0x02, 0x67, 0x68, 0x00, 0x00, 0x01];

/// The clock of this machine, whose synchronisation is unknown.
pub(super) fn utc_now() -> UtcTime {
    let now = clock_gettime(ClockId::Realtime);
    let nanos = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    UtcTime::from_unix_nanos(nanos, UtcTime::UNSYNCHRONISED)
}
