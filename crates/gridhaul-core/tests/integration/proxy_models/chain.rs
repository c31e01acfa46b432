//! The chain: one direction of data over sender, two proxies and receiver, with segments of one
//! byte.
//!
//! After a crash a proxy forwards all segments until all forwarded data is acknowledged. SYN, FIN,
//! windows in acknowledgements, selective acknowledgements and time are omitted. Hops drop,
//! duplicate and reorder segments arbitrarily: a segment may arrive at any time, any number of
//! times, or never.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Range;

use stateright::{Model, Property};

/// Bytes of the stream, and of a proxy's buffer and the receiver's window.
pub(crate) const BYTES: u8 = 3;
pub(crate) const BUFFER: u8 = 2;

/// The rules of a kind of proxy, and the state of an engaged one.
pub(crate) trait Rules: Copy + Debug + Eq + Hash + Send + Sync + 'static {
    /// Whether the receiver keeps bytes that arrive after a gap.
    const KEEPS_BYTES_AFTER_GAP: bool;

    /// An engaged proxy that stores nothing; bytes before `end` are acknowledged by both
    /// neighbours.
    fn empty(end: u8) -> Self;
    /// A byte arrives. Returns whether it is forwarded in the same step.
    fn accept(&mut self, byte: u8) -> bool;
    /// The acknowledgement to the previous hop.
    fn acknowledges(&self) -> u8;
    /// The next hop acknowledges the bytes before `number`; `sent` has a bit for each byte sent to
    /// it.
    fn release(&mut self, number: u8, sent: u8);
    /// Stored bytes that may be sent at any time.
    fn sendable(&self) -> Range<u8>;
    /// The bytes that are stored: a bit for each.
    fn stored(&self) -> u8;
    /// The bytes that a crash may lose.
    fn at_risk(&self) -> Range<u8>;
    /// Properties of this kind of proxy alone.
    fn properties() -> Vec<Property<Chain<Self>>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Proxy<R> {
    Engaged(R),
    /// End of the forwarded data, and the highest forwarded acknowledgement number.
    Forwarding {
        end: Option<u8>,
        acknowledged: Option<u8>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State<R> {
    /// First byte that is not acknowledged to the sender.
    una: u8,
    proxies: [Proxy<R>; 2],
    /// A bit for each byte that has arrived at the receiver.
    pub(crate) arrived: u8,
    /// Segments ever sent over each hop: a bit for each byte, and for each acknowledgement number.
    data: [u8; 3],
    acks: [u8; 3],
    /// The proxy that has crashed, and the range of its bytes at risk.
    crash: Option<(usize, Range<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Send { hop: usize, byte: u8 },
    Data { hop: usize, byte: u8 },
    Ack { hop: usize, number: u8 },
    Crash { proxy: usize },
}

#[derive(Debug)]
pub(crate) struct Chain<R>(pub(crate) PhantomData<R>);

/// End of the bytes without a gap from `from` on.
pub(crate) fn contiguous(bits: u8, from: u8) -> u8 {
    (from..BYTES).find(|byte| bits & (1 << byte) == 0).unwrap_or(BYTES)
}

impl<R: Rules> State<R> {
    pub(crate) fn delivered(&self) -> u8 {
        contiguous(self.arrived, 0)
    }

    /// Whether a full buffer of a proxy is lost.
    pub(crate) fn has_lost_full_buffer_of(&self, proxy: usize) -> bool {
        self.crash == Some((proxy, 0..BUFFER)) && (0..BUFFER).all(|byte| self.is_lost(byte))
    }

    /// Bytes that the node before a hop may send over it.
    fn sendable(&self, hop: usize) -> Range<u8> {
        match hop.checked_sub(1).map(|proxy| self.proxies[proxy]) {
            None => self.una..(self.una + BUFFER).min(BYTES),
            Some(Proxy::Engaged(engaged)) => engaged.sendable(),
            Some(Proxy::Forwarding { .. }) => 0..0,
        }
    }

    fn arrive(&mut self, hop: usize, byte: u8) {
        let Some(proxy) = self.proxies.get_mut(hop) else {
            if R::KEEPS_BYTES_AFTER_GAP || byte == self.delivered() {
                self.arrived |= 1 << byte;
            }
            self.acks[hop] |= 1 << self.delivered();
            return;
        };
        match proxy {
            Proxy::Engaged(engaged) => {
                let forwards = engaged.accept(byte);
                self.acks[hop] |= 1 << engaged.acknowledges();
                self.data[hop + 1] |= u8::from(forwards) << byte;
            }
            Proxy::Forwarding { end, .. } => {
                *end = (*end).max(Some(byte + 1));
                self.data[hop + 1] |= 1 << byte;
                proxy.engage_if_acknowledged();
            }
        }
    }

    fn acknowledge(&mut self, hop: usize, number: u8) {
        let Some(proxy) = hop.checked_sub(1) else {
            self.una = self.una.max(number);
            return;
        };
        match &mut self.proxies[proxy] {
            Proxy::Engaged(engaged) => engaged.release(number, self.data[hop]),
            Proxy::Forwarding { acknowledged, .. } => {
                *acknowledged = (*acknowledged).max(Some(number));
                self.acks[hop - 1] |= 1 << number;
                self.proxies[proxy].engage_if_acknowledged();
            }
        }
    }

    /// Whether a byte is acknowledged to the sender, has not arrived, and is stored in no proxy.
    fn is_lost(&self, byte: u8) -> bool {
        let stored = self.proxies.iter().fold(0, |stored, proxy| stored | proxy.stored());
        byte < self.una && (self.arrived | stored) & (1 << byte) == 0
    }

    fn was_at_risk(&self, byte: u8) -> bool {
        self.crash.as_ref().is_some_and(|(_, at_risk)| at_risk.contains(&byte))
    }
}

impl<R: Rules> Proxy<R> {
    fn stored(&self) -> u8 {
        match self {
            Self::Engaged(engaged) => engaged.stored(),
            Self::Forwarding { .. } => 0,
        }
    }

    fn engage_if_acknowledged(&mut self) {
        if let Self::Forwarding { end: Some(end), acknowledged: Some(number) } = *self
            && end == number
        {
            *self = Self::Engaged(R::empty(end));
        }
    }
}

impl<R: Rules> Model for Chain<R> {
    type State = State<R>;
    type Action = Step;

    fn init_states(&self) -> Vec<State<R>> {
        let proxies = [Proxy::Engaged(R::empty(0)); 2];
        let (data, acks) = ([0; 3], [0; 3]);
        vec![State { una: 0, proxies, arrived: 0, data, acks, crash: None }]
    }

    fn actions(&self, state: &State<R>, steps: &mut Vec<Step>) {
        for hop in 0..3 {
            let unsent = state.sendable(hop).filter(|byte| state.data[hop] & (1 << byte) == 0);
            steps.extend(unsent.map(|byte| Step::Send { hop, byte }));
            let sent = |bits: u8| (0..=BYTES).filter(move |bit| bits & (1 << bit) != 0);
            steps.extend(sent(state.data[hop]).map(|byte| Step::Data { hop, byte }));
            steps.extend(sent(state.acks[hop]).map(|number| Step::Ack { hop, number }));
        }
        if state.crash.is_none() {
            steps.extend((0..2).map(|proxy| Step::Crash { proxy }));
        }
    }

    fn next_state(&self, state: &State<R>, step: Step) -> Option<State<R>> {
        let mut next = state.clone();
        match step {
            Step::Send { hop, byte } => next.data[hop] |= 1 << byte,
            Step::Data { hop, byte } => next.arrive(hop, byte),
            Step::Ack { hop, number } => next.acknowledge(hop, number),
            Step::Crash { proxy } => {
                let Proxy::Engaged(engaged) = state.proxies[proxy] else { return None };
                next.crash = Some((proxy, engaged.at_risk()));
                next.proxies[proxy] = Proxy::Forwarding { end: None, acknowledged: None };
            }
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = R::properties();
        properties.extend([
            Property::always(
                "only bytes at risk in the crashed proxy are lost",
                |_, state: &State<R>| {
                    (0..BYTES).all(|byte| !state.is_lost(byte) || state.was_at_risk(byte))
                },
            ),
            Property::always("buffers are bounded", |_, state: &State<R>| {
                state.proxies.iter().all(|proxy| proxy.stored().count_ones() <= BUFFER.into())
            }),
            Property::sometimes(
                "a full buffer of the first proxy is lost",
                |_, state: &State<R>| state.has_lost_full_buffer_of(0),
            ),
            Property::sometimes(
                "all data arrives although bytes were at risk",
                |_, state: &State<R>| {
                    let risked =
                        state.crash.as_ref().is_some_and(|(_, at_risk)| !at_risk.is_empty());
                    risked && state.delivered() == BYTES
                },
            ),
            Property::sometimes(
                "all data arrives and all proxies are engaged",
                |_, state: &State<R>| {
                    let is_engaged = |proxy: &Proxy<R>| matches!(proxy, Proxy::Engaged(_));
                    let all_arrived = state.una == BYTES && state.delivered() == BYTES;
                    state.crash.is_some() && state.proxies.iter().all(is_engaged) && all_arrived
                },
            ),
        ]);
        properties
    }
}
