//! Traffic loads: the messages that an application passes to its transport, and their times.
//!
//! A load defines only sizes and times. [`Demand`] classifies loads for the transport: an endless
//! stream, a given amount, messages at times independent of the network (open loop), messages as
//! fast as the transport accepts them, or dialogues of both ends. [`Application`] executes a
//! demand over a [`Carrier`]: a simulated connection or a socket.

mod acknowledgement_counters;
mod application;
mod coap;
mod connections;
mod deadline;
mod event_burst;
mod exchange;
mod group_totals;
mod handshake_times;
mod iec_104;
mod message_delays;
mod message_row;
mod message_session;
mod on_off;
mod on_off_periods;
mod periodic;
mod poisson;
mod request_response;
mod start_schedule;

use std::sync::Arc;

use gridhaul_scenario::scenario::{self, Load};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::RandomStream;

pub use acknowledgement_counters::{AcknowledgementCounters, MessageEvent};
pub use application::{
    Application, Carrier, Delivered, InFlightMessages, Message, Outbox, Transfer,
};
pub use coap::{
    CoapContent, CoapCounters, CoapDatagram, CoapMember, CoapRules, CoapTransmission,
    DeliveredMessage,
};
pub use connections::{
    AcceptQueue, ConnectionCounters, ConnectionManager, ConnectionRules, ConnectionTransport,
    EndState, IdleRules, KeepAliveAction, KeepAliveTimer, LocalPorts, ManagedCarrier, NatEntry,
    NatVerdict, NoLocalPort, Reconnection, TlsFlights, UserTimeout,
};
pub use deadline::DeadlineCounter;
pub use event_burst::Burst;
pub use exchange::Exchange;
pub use group_totals::{Goodputs, InProgress, Transfers, message_loss};
pub use handshake_times::HandshakeTimes;
pub use iec_104::{Iec104, Iec104Frame};
pub use message_delays::{MessageDelays, WaitingTimes};
pub use message_row::MessageRow;
pub use message_session::{MessageFrame, MessageSession, Publication, PublicationId, SessionRules};
pub use on_off::OnOff;
pub use on_off_periods::OnOffPeriods;
pub use periodic::Periodic;
pub use poisson::Poisson;
pub use request_response::RequestResponse;
pub use start_schedule::{DEFAULT_START_SPREAD, StartSchedule};

/// A message arrival: an event of the arrival process of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When the application passes the message to the transport.
    pub at: Instant,
    /// Size of the message in bytes of payload.
    pub bytes: u64,
}

/// The kinds of loads for a transport.
#[derive(Debug, Clone)]
pub enum Demand {
    /// As much as the transport accepts (`bulk`).
    Endless,
    /// This many bytes at once, then the end (`transfer`).
    Limited(u64),
    /// Messages at times independent of the network (`periodic`, `poisson`, `burst`, `on_off` with
    /// a rate).
    Open(Source),
    /// Messages as fast as the transport accepts them, during on periods (`on_off` without a rate).
    Greedy(Greedy),
    /// Messages of a recorded trace, passed on by its reader (`trace`), of another program
    /// (`external`), or of another flow (`mqtt_subscription`).
    Recorded,
    /// Requests and responses, each sent after the previous message has arrived
    /// (`request_response`).
    Dialogue(RequestResponse),
    /// Steps of both ends, each sent after the previous one (`exchange`, `modbus`, `dlms`).
    Exchange(Box<Exchange>),
    /// Measured values with a window of unacknowledged frames (`iec_104`).
    Iec104(Box<Iec104>),
    /// Messages that the receiver acknowledges (`acknowledgement`, MQTT).
    Messages(Box<MessageSession>),
}

/// Messages as fast as the transport accepts them, during on periods.
#[derive(Debug, Clone)]
pub struct Greedy {
    /// Size of a message in bytes of payload.
    pub bytes: u64,
    /// The on and off periods.
    pub periods: OnOffPeriods,
    /// The transport refused the last message.
    pub refused: bool,
}

/// An open-loop source of messages. Those of meters are in place, so that an event of a meter reads
/// fewer cache lines; a larger one is boxed, because each flow has the size of the largest.
#[derive(Debug, Clone)]
pub enum Source {
    /// A message in every period.
    Periodic(Periodic),
    /// Messages with exponentially distributed interarrival times.
    Poisson(Poisson),
    /// Messages at a fixed rate during on periods.
    OnOff(OnOff),
    /// Reports after an event.
    Burst(Box<Burst>),
}

/// A load of many members, which share its constant part.
#[derive(Debug, Clone)]
pub enum SharedLoad<'a> {
    /// An on–off load.
    OnOff(Arc<scenario::OnOff>),
    /// Any other load; its members have copies of its keys.
    Other(&'a Load),
}

impl<'a> From<&'a Load> for SharedLoad<'a> {
    fn from(load: &'a Load) -> Self {
        match load {
            // The keys of this load take more memory than the rest of the state of a member.
            Load::OnOff(keys) => Self::OnOff(Arc::new(*keys)),
            other => Self::Other(other),
        }
    }
}

impl Demand {
    /// The demand of a member of `load` from `start` on. Each member needs its own random stream.
    #[must_use]
    pub fn of_member(load: &SharedLoad<'_>, start: Instant, random: RandomStream) -> Self {
        match load {
            SharedLoad::OnOff(keys) if keys.rate.is_some() => {
                let keys = Arc::clone(keys);
                Self::Open(Source::OnOff(OnOff::new(keys, start, random)))
            }
            SharedLoad::OnOff(keys) => Self::Greedy(Greedy {
                bytes: keys.size.get(),
                periods: OnOffPeriods::new(keys, start, random),
                refused: false,
            }),
            SharedLoad::Other(load) => Self::new(load, start, random),
        }
    }

    /// The demand of `load` from `start` on. Each flow needs its own random stream.
    #[must_use]
    pub fn new(load: &Load, start: Instant, random: RandomStream) -> Self {
        match load {
            Load::Bulk => Self::Endless,
            Load::Transfer(keys) => Self::Limited(keys.size.get()),
            Load::Periodic(keys) => {
                Self::Open(Source::Periodic(Periodic::new(keys, start, random)))
            }
            Load::Poisson(keys) => Self::Open(Source::Poisson(Poisson::new(keys, start, random))),
            Load::OnOff(_) => Self::of_member(&load.into(), start, random),
            Load::Burst(keys) => {
                Self::Open(Source::Burst(Box::new(Burst::new(keys, start, random))))
            }
            Load::Trace(_) | Load::External | Load::MqttSubscription(_) => Self::Recorded,
            Load::Mqtt(keys) => {
                let times = scenario::Periodic {
                    size: keys.size,
                    every: keys.every,
                    jitter: Duration::ZERO,
                    synchronised: keys.synchronised,
                };
                Self::Open(Source::Periodic(Periodic::new(&times, start, random)))
            }
            Load::RequestResponse(keys) => Self::Dialogue(RequestResponse::new(keys, start)),
            Load::Exchange(keys) => Self::Exchange(Box::new(Exchange::new(keys, start))),
            Load::Iec104(keys) => Self::Iec104(Box::new(Iec104::new(keys, start, random))),
            Load::Application(_) | Load::Modbus(_) | Load::Dlms(_) => {
                Self::new(&load.plain(), start, random)
            }
        }
    }
}

impl Demand {
    /// The demand of a member whose messages are acknowledged, if rules request this.
    #[must_use]
    pub fn acknowledged(self, rules: Option<&SessionRules>) -> Self {
        let Some(rules) = rules else { return self };
        let source = match self {
            Self::Open(source) => Some(source),
            _ => None,
        };
        Self::Messages(Box::new(MessageSession::new(rules.clone(), source)))
    }
}

impl Source {
    /// The source of an open-loop load from `start` on; `None` for any other load.
    #[must_use]
    pub fn new(load: &Load, start: Instant, random: RandomStream) -> Option<Self> {
        match Demand::new(load, start, random) {
            Demand::Open(source) => Some(source),
            _ => None,
        }
    }

    /// When the next message arrives; [`Instant::NEVER`] if none will (a rate of zero).
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Instant {
        match self {
            Self::Periodic(source) => source.next_time(),
            Self::Poisson(source) => source.next_time(),
            Self::OnOff(source) => source.next_time(),
            Self::Burst(source) => source.next_time(),
        }
    }

    /// The next message, in order of time; `None` if none will ever arrive.
    #[inline]
    pub fn next_message(&mut self) -> Option<Arrival> {
        match self {
            Self::Periodic(source) => Some(source.next_message()),
            Self::Poisson(source) => Some(source.next_message()),
            Self::OnOff(source) => source.next_message(),
            Self::Burst(source) => source.next_message(),
        }
    }

    /// The next message, if it arrives at or before `now`.
    #[inline]
    pub fn next_message_by(&mut self, now: Instant) -> Option<Arrival> {
        if self.next_time() <= now { self.next_message() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_of_a_meter_is_small() {
        // There may be a million meters, each with one schedule.
        assert!(size_of::<Source>() <= 64, "{}", size_of::<Source>());
        assert!(size_of::<OnOff>() <= 48, "{}", size_of::<OnOff>());
        assert!(size_of::<Demand>() <= 112, "{}", size_of::<Demand>());
    }

    #[test]
    fn application_profiles_are_periodic_loads() {
        use gridhaul_scenario::scenario::{Application, ApplicationProfile};
        let application = Load::Application(Application {
            profile: ApplicationProfile::WideAreaMeasurement,
            every: None,
            size: None,
            synchronised: true,
        });
        let random = RandomStream::named(1, 0, "pmu", 0, "load");
        let mut source = Source::new(&application, Instant::ZERO, random).unwrap();
        let messages: Vec<_> = std::iter::from_fn(|| source.next_message())
            .map(|message| (message.at.as_nanos() / 1_000_000, message.bytes))
            .take(3)
            .collect();
        assert_eq!(messages, [(0, 100), (40, 100), (80, 100)]);
    }
}
