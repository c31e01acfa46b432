//! Limits of the throughput of a connection, one file for each cause.
//!
//! Each rule claims a part of a wait of the sender ([`Wait`]). The first rules are those whose
//! evidence is unmistakable; the congestion window, which no packet shows, is the last: it limits a
//! sender that has data and a receive window with space, and waits for an acknowledgement.

mod account;
mod application;
mod congestion_window;
mod counters;
mod delayed_ack;
mod link_rate;
mod loss;
mod nagle;
mod proxy;
mod receive_window;
mod timeout;
mod wait;

use gridhaul_scenario::units::Duration;
use serde::Serialize;

pub use counters::{Counters, Leg};

pub(crate) use account::{Account, is_masked};
pub(crate) use counters::Facts;
pub(crate) use wait::{Next, Wait};

/// Limit of the throughput of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The sender has no data to send.
    Application,
    /// The receive window is full.
    ReceiveWindow,
    /// The congestion window is full, before any loss.
    CongestionWindow,
    /// A loss is repaired, or has reduced the congestion window while the link is not busy.
    Loss,
    /// The sender waits for its retransmission timer.
    Timeout,
    /// The receiver delays an acknowledgement for which the sender waits.
    DelayedAck,
    /// Nagle's algorithm keeps a short segment back.
    Nagle,
    /// The buffer of a proxy is full.
    Proxy,
    /// The bottleneck transmits without a pause.
    LinkRate,
}

/// Share of the time of the transfer in which each limit held.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shares {
    /// Shares in descending order, without zeros.
    pub limits: Vec<(Limit, f64)>,
    /// Share without an explanation.
    pub unexplained: f64,
}

/// A rule: the time of a wait that it claims of the time that remains.
type Rule = fn(&Wait, Duration) -> Duration;

/// The rules in the order in which they claim.
const RULES: [(Limit, Rule); 8] = [
    (Limit::Timeout, timeout::claim),
    (Limit::Nagle, nagle::claim),
    (Limit::Application, application::claim),
    (Limit::DelayedAck, delayed_ack::claim),
    (Limit::ReceiveWindow, receive_window::claim),
    (Limit::Application, application::claim_after_short),
    (Limit::Loss, loss::claim),
    (Limit::CongestionWindow, congestion_window::claim),
];

impl Limit {
    /// All limits.
    pub const ALL: [Self; 9] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Loss,
        Self::Timeout,
        Self::DelayedAck,
        Self::Nagle,
        Self::Proxy,
        Self::LinkRate,
    ];

    /// The name, as in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::CongestionWindow => "congestion_window",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::DelayedAck => "delayed_ack",
            Self::Nagle => "nagle",
            Self::Proxy => "proxy",
            Self::LinkRate => "link_rate",
        }
    }

    /// The noun in a sentence.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Application => "the application",
            Self::ReceiveWindow => "the receive window",
            Self::CongestionWindow => "the congestion window",
            Self::Loss => "losses",
            Self::Timeout => "retransmission timeouts",
            Self::DelayedAck => "delayed acknowledgements",
            Self::Nagle => "Nagle's algorithm",
            Self::Proxy => "a proxy",
            Self::LinkRate => "the rate of the link",
        }
    }

    /// The evidence in a connection whose limit this is.
    pub(crate) fn evidence(self, facts: &Facts<'_>) -> String {
        match self {
            Self::Application => application::evidence(facts),
            Self::ReceiveWindow => receive_window::evidence(facts),
            Self::CongestionWindow => congestion_window::evidence(facts),
            Self::Loss => loss::evidence(facts),
            Self::Timeout => timeout::evidence(facts),
            Self::DelayedAck => delayed_ack::evidence(facts),
            Self::Nagle => nagle::evidence(facts),
            Self::Proxy => proxy::evidence(facts),
            Self::LinkRate => link_rate::evidence(facts),
        }
    }
}

impl Shares {
    /// The share of a limit.
    #[must_use]
    pub fn of(&self, limit: Limit) -> f64 {
        self.limits.iter().find(|(other, _)| *other == limit).map_or(0.0, |(_, share)| *share)
    }

    /// The largest share, and the second.
    pub(crate) fn largest(&self) -> [Option<(Limit, f64)>; 2] {
        [self.limits.first().copied(), self.limits.get(1).copied()]
    }
}
