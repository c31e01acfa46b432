//! The rules of the messages of a flow that applications acknowledge.

use gridhaul_scenario::scenario::{
    Acknowledgement, ConnectionPolicy, Flow, FlowEnd, Load, Mqtt, RetransmitOn, Scenario,
};
use gridhaul_scenario::units::Duration;

/// Sizes of the frames of a session, and when messages are transmitted again.
#[derive(Debug, Clone)]
pub struct SessionRules {
    /// The end that sends messages.
    pub(super) writer: FlowEnd,
    /// Size of the frame of a message; `None`: the message without a header.
    pub(super) frame: Option<u64>,
    /// Sizes of the frames that follow a message, of which the receiver sends the first.
    pub(super) replies: Vec<u64>,
    /// Sizes of the frames before the first message of the first connection and of later ones, of
    /// which the `from` end sends the first.
    pub(super) openings: [Vec<u64>; 2],
    /// When the sender retransmits a message on a connection; `None`: on the next one only.
    pub(super) timer: Option<RetransmissionTimer>,
    /// Messages that may be without an acknowledgement.
    pub(super) window: usize,
    /// Time from the arrival of a message to the first reply.
    pub(super) think: Duration,
    /// Whether the receiver discards further copies.
    pub(super) is_once: bool,
    /// Time without a packet after which the `from` end probes the connection; 0 for never.
    pub(super) keep_alive: Duration,
    /// Whether a connection carries one message.
    pub(super) is_per_message: bool,
    /// Whether the receiver forwards messages.
    pub(super) forwards: bool,
}

/// The timer of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetransmissionTimer {
    /// Time to the next transmission.
    pub(super) timeout: Duration,
    /// Retransmissions before the sender gives a message up.
    pub(super) retransmissions: u32,
    /// The connection of a retransmission.
    pub(super) retransmit_on: RetransmitOn,
}

impl SessionRules {
    /// The rules of a flow; `None` if applications acknowledge nothing.
    #[must_use]
    pub fn of(scenario: &Scenario, name: &str, flow: &Flow) -> Option<Self> {
        if let Some(keys) = &flow.acknowledgement {
            return Some(Self::acknowledged(flow, keys));
        }
        if let Load::Mqtt(keys) = &flow.load {
            let is_subscribed = |flow: &Flow| match &flow.load {
                Load::MqttSubscription(keys) => keys.publications == name,
                _ => false,
            };
            let forwards = scenario.flow.values().any(is_subscribed);
            let openings = [keys.opening(), keys.opening()];
            return Some(Self { forwards, ..Self::mqtt(keys, FlowEnd::From, keys.qos, openings) });
        }
        let (_, keys) = scenario.publications_of(flow)?;
        let Load::MqttSubscription(subscription) = &flow.load else { return None };
        // The session, and with it the subscription, outlives a connection (section 3.1.2.4).
        let openings = [[keys.opening(), keys.subscription()].concat(), keys.opening()];
        Some(Self::mqtt(&keys, FlowEnd::To, keys.qos.min(subscription.qos), openings))
    }

    fn acknowledged(flow: &Flow, keys: &Acknowledgement) -> Self {
        Self {
            writer: FlowEnd::From,
            frame: None,
            replies: vec![keys.size.get()],
            openings: Default::default(),
            timer: Some(RetransmissionTimer {
                timeout: keys.timeout,
                retransmissions: keys.retransmissions,
                retransmit_on: keys.retransmit_on,
            }),
            window: keys.window as usize,
            think: keys.think,
            is_once: false,
            keep_alive: Duration::ZERO,
            is_per_message: flow.connection == ConnectionPolicy::PerMessage,
            forwards: false,
        }
    }

    fn mqtt(keys: &Mqtt, writer: FlowEnd, qos: u8, openings: [Vec<u64>; 2]) -> Self {
        Self {
            writer,
            frame: Some(keys.publish(qos)),
            // PUBACK; PUBREC, PUBREL and PUBCOMP.
            replies: vec![Mqtt::RESPONSE; [0, 1, 3][usize::from(qos.min(2))]],
            openings,
            timer: None,
            window: if qos == 0 { usize::MAX } else { keys.in_flight as usize },
            think: Duration::ZERO,
            is_once: qos == 2,
            keep_alive: keys.keep_alive,
            is_per_message: false,
            forwards: false,
        }
    }

    /// Size of a message on the connection.
    pub(super) fn frame_size(&self, message: u64) -> u64 {
        self.frame.unwrap_or(message)
    }
}
