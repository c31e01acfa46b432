//! Sampled Values (IEC 61850-9-2): each message is the `seqData` of a frame with one set of
//! samples.

use gridhaul_protocols::iec61850::{Application, FrameError, UtcTime};
use gridhaul_protocols::process_bus::{Frame, FrameAddress, Pdu, SAMPLED_VALUES, ether_type};
use gridhaul_protocols::sampled_values::{
    Asdu, LIGHT_EDITION_CHANNELS, LightEditionChannel, SampledValues, Synchronisation,
    light_edition, write_light_edition,
};
use gridhaul_protocols::settings::LIGHT_EDITION_MESSAGE;
use rustix::time::{ClockId, clock_gettime};

use super::frame_link::{
    self, FrameIdentity, FrameReceiver, FrameSender, ReceiverPlace, receiver_place,
};
use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, Refused, Subscriber,
};
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// Kind of the samples of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataSet {
    /// The bytes of the message, such as the raw floats that VILLASnode sends.
    #[default]
    Raw,
    /// The fixed data set of 9-2LE: the values of eight channels, each with its quality, which is
    /// good. The message is the values. The sample counter restarts after each second.
    LightEdition {
        /// Samples per second: 80 in each cycle.
        per_second: u16,
    },
    /// The bytes of the message, with this name of the data set and without a time, as VILLASnode
    /// sent them in 2018.
    Named(&'static str),
}

/// Sampled Values.
#[derive(Debug, Clone)]
pub struct SampledValueStream {
    /// VLAN and APPID.
    pub identity: FrameIdentity,
    /// Name of the stream, `svID`.
    pub id: String,
    /// Data set.
    pub data_set: DataSet,
}

impl Protocol for SampledValueStream {
    fn name(&self) -> &'static str {
        match self.data_set {
            DataSet::Raw | DataSet::Named(_) => "sv",
            DataSet::LightEdition { .. } => "sv-9-2le",
        }
    }

    fn settings(&self) -> Settings {
        let data_set = match self.data_set {
            DataSet::Raw => "raw".into(),
            DataSet::LightEdition { per_second } => format!("9-2LE, {per_second} samples/s"),
            DataSet::Named(name) => format!("raw, datSet {name}"),
        };
        let mut settings = self.identity.settings();
        settings.push("sv_id", self.id.clone());
        settings.push("data_set", data_set);
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let subscriber = self.subscriber(receiver_place(sites))?;
        let publisher = self.publisher(&sites.from)?;
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

impl SampledValueStream {
    pub(super) fn publisher(
        &self,
        site: &Site<'_>,
    ) -> Result<SampledValuePublisher, ProtocolError> {
        Ok(SampledValuePublisher {
            sender: frame_link::sender(site)?,
            identity: self.identity,
            id: self.id.clone(),
            data_set: self.data_set,
            count: 0,
            frame: Vec::new(),
        })
    }

    pub(super) fn subscriber(
        &self,
        place: ReceiverPlace<'_>,
    ) -> Result<SampledValueSubscriber, ProtocolError> {
        let receiver = frame_link::receiver(place)?;
        let (identity, data_set) = (self.identity, self.data_set);
        Ok(SampledValueSubscriber { receiver, identity, data_set })
    }
}

impl DataSet {
    /// Name in the frames, the optional element `datSet`.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Raw | Self::LightEdition { .. } => None,
        }
    }

    /// The samples of a message.
    fn samples(self, message: &[u8]) -> Result<Vec<u8>, Refused> {
        if let Self::Raw | Self::Named(_) = self {
            return Ok(message.to_vec());
        }
        let (values, rest) = message.as_chunks();
        let values: Option<&[[u8; 4]; LIGHT_EDITION_CHANNELS]> = values.try_into().ok();
        let values = values.filter(|_| rest.is_empty());
        let values = values.ok_or(Refused::TooLong(LIGHT_EDITION_MESSAGE))?;
        let channels = values
            .map(|value| LightEditionChannel { value: i32::from_be_bytes(value), quality: 0 });
        let mut samples = Vec::new();
        write_light_edition(&mut samples, &channels);
        Ok(samples)
    }

    /// Appends the message in samples. Samples of another data set are no message: nothing is
    /// appended, and the message counts as corrupt.
    fn append_message(self, samples: &[u8], message: &mut Vec<u8>) {
        match self {
            Self::Raw | Self::Named(_) => message.extend_from_slice(samples),
            Self::LightEdition { .. } => {
                let channels = light_edition(samples).into_iter().flatten();
                channels.for_each(|channel| message.extend(channel.value.to_be_bytes()));
            }
        }
    }

    /// The sample counter of the next frame.
    const fn next_count(self, count: u16) -> u16 {
        match self {
            Self::Raw | Self::Named(_) => count.wrapping_add(1),
            Self::LightEdition { per_second } if count + 1 == per_second => 0,
            Self::LightEdition { .. } => count + 1,
        }
    }
}

#[derive(Debug)]
pub(super) struct SampledValuePublisher {
    sender: FrameSender,
    identity: FrameIdentity,
    id: String,
    data_set: DataSet,
    count: u16,
    /// The last frame, whose memory is used again.
    frame: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct SampledValueSubscriber {
    receiver: FrameReceiver,
    identity: FrameIdentity,
    data_set: DataSet,
}

impl Publisher for SampledValuePublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        let asdu = Asdu {
            id: self.id.clone(),
            data_set: self.data_set.name().map(str::to_owned),
            sample_count: self.count,
            revision: 1,
            // 9-2LE leaves the optional elements out.
            refresh_time: (self.data_set == DataSet::Raw).then(utc_now),
            synchronisation: Synchronisation::None,
            sample_rate: None,
            samples: self.data_set.samples(message)?,
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
        self.count = self.data_set.next_count(self.count);
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
                    for asdu in &pdu.asdus {
                        self.data_set.append_message(&asdu.samples, message);
                    }
                    return Ok(Received::Message(received.times));
                }
                // A frame that cannot be parsed, or has another tag, is a corrupt message: its
                // check sum is wrong.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_values_of_the_data_set() {
        let data_set = DataSet::LightEdition { per_second: 4_000 };
        let message: Vec<u8> = (0..32).collect();
        let samples = data_set.samples(&message).unwrap();
        let channels = light_edition(&samples).unwrap();
        assert!(channels.iter().all(|channel| channel.quality == 0), "good quality");
        let mut found = Vec::new();
        data_set.append_message(&samples, &mut found);
        assert_eq!(found, message);
        for length in [0, 31, 33, 64] {
            assert!(data_set.samples(&vec![0; length]).is_err(), "{length} B");
        }
        let mut none = Vec::new();
        data_set.append_message(&samples[1..], &mut none);
        assert!(none.is_empty(), "another data set");
    }

    #[test]
    fn the_sample_counter_restarts_after_a_second() {
        let data_set = DataSet::LightEdition { per_second: 4_000 };
        assert_eq!([0, 3_998, 3_999].map(|count| data_set.next_count(count)), [1, 3_999, 0]);
        assert_eq!(DataSet::Raw.next_count(u16::MAX), 0);
    }
}
