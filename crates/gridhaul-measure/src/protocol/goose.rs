//! GOOSE (IEC 61850-8-1): each message is an event, which is retransmitted until the next one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_protocols::goose::{
    Data, GooseMessage, GoosePdu, GoosePublisher, GooseReceiver, Reception, RetransmissionSchedule,
};
use gridhaul_protocols::iec61850::{Application, FrameError, UtcTime};
use gridhaul_protocols::process_bus::{Frame, FrameAddress, GOOSE, Pdu, ether_type};
use gridhaul_scenario::units::Instant;

use super::frame_link::{
    self, FrameIdentity, FrameReceiver, FrameSender, ReceiverPlace, receiver_place,
};
use super::sampled_values::{SOURCE, utc_now};
use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, Refused, Subscriber,
};
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// GOOSE with a data set of one octet string.
#[derive(Debug, Clone)]
pub struct GooseControlBlock {
    /// VLAN and APPID.
    pub identity: FrameIdentity,
    /// Reference of the control block, `gocbRef`.
    pub reference: String,
    /// Retransmissions of an event; `None` for none, so that each frame is a message.
    pub retransmission: Option<RetransmissionSchedule>,
}

impl Protocol for GooseControlBlock {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn settings(&self) -> Settings {
        let retransmission = self.retransmission.map_or_else(
            || "none".into(),
            |schedule| {
                let seconds =
                    [schedule.shortest, schedule.longest].map(|schedule| schedule.as_secs_f64());
                format!(
                    "after {} s, factor {}, at most {} s",
                    seconds[0], schedule.factor, seconds[1]
                )
            },
        );
        let mut settings = self.identity.settings();
        settings.push("control_block", self.reference.clone());
        settings.push("retransmission", retransmission);
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let subscriber = self.subscriber(receiver_place(sites))?;
        let publisher = self.publisher(&sites.from, sites.clock)?;
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

impl GooseControlBlock {
    pub(super) fn publisher(
        &self,
        site: &Site<'_>,
        clock: Clock,
    ) -> Result<GooseEventPublisher, ProtocolError> {
        let sender = frame_link::sender(site)?;
        let shared = Arc::new(Shared {
            event: Mutex::new(Event::default()),
            changed: Condvar::new(),
            sender,
            control_block: self.clone(),
            clock,
        });
        let retransmitting = self.retransmission.map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.retransmit())
        });
        Ok(GooseEventPublisher { shared, retransmitting })
    }

    pub(super) fn subscriber(
        &self,
        place: ReceiverPlace<'_>,
    ) -> Result<GooseEventSubscriber, ProtocolError> {
        Ok(GooseEventSubscriber {
            receiver: frame_link::receiver(place)?,
            identity: self.identity,
            state: GooseReceiver::default(),
            by_retransmission: None,
        })
    }
}

/// State shared by the publisher and the thread of retransmissions.
#[derive(Debug)]
struct Shared {
    event: Mutex<Event>,
    /// There is a new event, or the publisher has gone.
    changed: Condvar,
    sender: FrameSender,
    control_block: GooseControlBlock,
    clock: Clock,
}

/// The current event.
#[derive(Debug, Default)]
struct Event {
    /// `None` before the first event.
    publisher: Option<GoosePublisher>,
    time: UtcTime,
    message: Vec<u8>,
    is_over: bool,
}

/// The schedule without retransmissions: the next one is never due.
const NEVER: RetransmissionSchedule = RetransmissionSchedule {
    shortest: gridhaul_scenario::units::Duration::from_secs(1 << 20),
    factor: 1.0,
    longest: gridhaul_scenario::units::Duration::from_secs(1 << 20),
};

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the retransmissions that are due, until the publisher has gone.
    fn retransmit(&self) {
        request_realtime_priority();
        let mut event = self.lock();
        while !event.is_over {
            let now = self.clock.now();
            let due =
                event.publisher.as_ref().map_or(Instant::NEVER, GoosePublisher::next_deadline);
            if due > now {
                let wait = self.clock.until(due).min(std::time::Duration::from_secs(1));
                let waited = self.changed.wait_timeout(event, wait);
                event = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            // A frame that the device does not accept counts as lost; the next retransmission
            // follows.
            let _ = self.send(&mut event, now);
        }
    }

    /// Sends the message of the current event that is due.
    fn send(&self, event: &mut Event, now: Instant) -> Result<(), Refused> {
        let due = event.publisher.as_mut().and_then(|publisher| publisher.poll_send(now));
        let Some(numbers) = due else { return Ok(()) };
        let mut bytes = Vec::new();
        self.frame(event, numbers).encode(&mut bytes).map_err(std::io::Error::other)?;
        self.sender.send(&bytes)
    }

    fn frame(&self, event: &Event, numbers: GooseMessage) -> Frame {
        let GooseControlBlock { identity, reference, .. } = &self.control_block;
        let pdu = GoosePdu {
            control_block: reference.clone(),
            time_allowed_to_live_ms: numbers.time_allowed_to_live_ms,
            data_set: format!("{reference}$set"),
            id: None,
            time: event.time,
            state_number: numbers.state_number,
            sequence_number: numbers.sequence_number,
            simulation: false,
            revision: 1,
            needs_commissioning: false,
            values: vec![Data::OctetString(event.message.clone())],
        };
        Frame {
            address: FrameAddress {
                destination: [0x01, 0x0c, 0xcd, 0x01, 0x00, 0x01],
                source: SOURCE,
                vlan: identity.vlan,
            },
            application: Application { id: identity.application, simulated: false },
            pdu: Pdu::Goose(pdu),
        }
    }
}

#[derive(Debug)]
pub(super) struct GooseEventPublisher {
    shared: Arc<Shared>,
    retransmitting: Option<JoinHandle<()>>,
}

impl Publisher for GooseEventPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        let shared = &self.shared;
        let mut event = shared.lock();
        let now = shared.clock.now();
        match &mut event.publisher {
            Some(publisher) => publisher.handle_event(now),
            none => {
                let schedule = shared.control_block.retransmission.unwrap_or(NEVER);
                *none = Some(GoosePublisher::new(schedule, now));
            }
        }
        event.time = utc_now();
        event.message.clear();
        event.message.extend_from_slice(message);
        let sent = shared.send(&mut event, now);
        drop(event);
        shared.changed.notify_one();
        sent
    }
}

impl Drop for GooseEventPublisher {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.retransmitting.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
pub(super) struct GooseEventSubscriber {
    receiver: FrameReceiver,
    identity: FrameIdentity,
    state: GooseReceiver,
    /// The last event whose first message came after a retransmission, or was lost.
    by_retransmission: Option<u32>,
}

impl GooseEventSubscriber {
    /// Whether a frame is a message: the first message of an event, each copy of it, and the
    /// retransmission that replaces it.
    fn is_message(&mut self, pdu: &GoosePdu, at: Instant) -> bool {
        let (state, sequence) = (pdu.state_number, pdu.sequence_number);
        let reception = self.state.handle_message(at, state, sequence, pdu.time_allowed_to_live_ms);
        if sequence == 0 {
            return self.by_retransmission != Some(state);
        }
        let replaces = matches!(reception, Reception::Event { .. });
        if replaces {
            self.by_retransmission = Some(state);
        }
        replaces
    }
}

impl Subscriber for GooseEventSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let until = self.receiver.clock().now() + RECEIVE_WAIT;
        while let Some(received) = self.receiver.receive(until)? {
            if ether_type(received.bytes) != Some(GOOSE) {
                continue;
            }
            let (times, vlan) = (received.times, received.vlan);
            let pdu = match Frame::decode(received.bytes) {
                Ok(Frame { application, .. }) if application.id != self.identity.application => {
                    continue;
                }
                Ok(Frame { pdu: Pdu::Goose(pdu), .. }) if vlan == self.identity.vlan => Some(pdu),
                Err(FrameError::Ethernet(_) | FrameError::EtherType(_)) => continue,
                // A frame that cannot be parsed, or has another tag, is a corrupt message.
                Ok(_) | Err(_) => None,
            };
            message.clear();
            match pdu {
                Some(pdu) if !self.is_message(&pdu, times.read) => continue,
                Some(pdu) => {
                    if let [Data::OctetString(bytes)] = &pdu.values[..] {
                        message.extend_from_slice(bytes);
                    }
                }
                None => {}
            }
            return Ok(Received::Message(times));
        }
        Ok(Received::Nothing)
    }
}
