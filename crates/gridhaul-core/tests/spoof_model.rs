//! Model checking of a chain of two `spoof` proxies with at most one crash.
//!
//! The model has one direction of data over sender, two proxies and receiver, with segments of one
//! byte, and the rules of `Spoof`: a byte within the buffer is stored and forwarded at once, also
//! after a gap; the acknowledgement covers the bytes without a gap; a byte is stored until the next
//! hop acknowledges it, and retransmitted at any time. After a crash the proxy forwards all segments
//! until all forwarded data is acknowledged. SYN, FIN, windows in acknowledgements, selective
//! acknowledgements and time are omitted. Hops drop, duplicate and reorder segments arbitrarily: a
//! segment may arrive at any time, any number of times, or never. The model does not prove that the
//! code follows these rules; the property tests of `pep` test the code.

use stateright::{Checker, Model, Property};

/// Bytes of the stream, and of a proxy's buffer and the receiver's window.
const BYTES: u8 = 3;
const BUFFER: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Proxy {
    /// Bytes before `released` are acknowledged by the next hop; `stored` has a bit for each stored
    /// byte.
    Engaged { released: u8, stored: u8 },
    /// End of the forwarded data, and the highest forwarded acknowledgement number.
    Forwarding { end: Option<u8>, acknowledged: Option<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// First byte that is not acknowledged to the sender.
    una: u8,
    proxies: [Proxy; 2],
    /// A bit for each byte that has arrived at the receiver.
    arrived: u8,
    /// Segments ever sent over each hop: a bit for each byte, and for each acknowledgement number.
    data: [u8; 3],
    acks: [u8; 3],
    /// The proxy that has crashed, and the range of its bytes at risk.
    crash: Option<(usize, u8, u8)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Send { byte: u8 },
    Data { hop: usize, byte: u8 },
    Ack { hop: usize, number: u8 },
    Crash { proxy: usize },
}

struct Chain;

/// End of the bytes without a gap from `from` on.
fn contiguous(bits: u8, from: u8) -> u8 {
    (from..BYTES).find(|byte| bits & (1 << byte) == 0).unwrap_or(BYTES)
}

impl State {
    fn arrive(&mut self, hop: usize, byte: u8) {
        let Some(proxy) = self.proxies.get_mut(hop) else {
            self.arrived |= 1 << byte;
            self.acks[hop] |= 1 << contiguous(self.arrived, 0);
            return;
        };
        match proxy {
            Proxy::Engaged { released, stored } => {
                if (*released..*released + BUFFER).contains(&byte) {
                    *stored |= 1 << byte;
                    // Forwarded at once, whatever is missing before this byte.
                    self.data[hop + 1] |= 1 << byte;
                }
                self.acks[hop] |= 1 << contiguous(*stored, *released);
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
            Proxy::Engaged { released, stored } => {
                // An acknowledgement of data that was never sent is ignored.
                if number > *released && self.data[hop] & (1 << (number - 1)) != 0 {
                    *released = number;
                    *stored &= !0 << number;
                }
            }
            Proxy::Forwarding { acknowledged, .. } => {
                *acknowledged = (*acknowledged).max(Some(number));
                self.acks[hop - 1] |= 1 << number;
                self.proxies[proxy].engage_if_acknowledged();
            }
        }
    }

    fn delivered(&self) -> u8 {
        contiguous(self.arrived, 0)
    }

    /// Whether a byte is acknowledged to the sender, has not arrived, and is stored in no proxy.
    fn is_lost(&self, byte: u8) -> bool {
        let is_stored = self.proxies.iter().any(|proxy| match proxy {
            Proxy::Engaged { stored, .. } => stored & (1 << byte) != 0,
            Proxy::Forwarding { .. } => false,
        });
        byte < self.una && self.arrived & (1 << byte) == 0 && !is_stored
    }

    fn was_at_risk(&self, byte: u8) -> bool {
        self.crash.is_some_and(|(_, first, end)| (first..end).contains(&byte))
    }
}

impl Proxy {
    fn engage_if_acknowledged(&mut self) {
        if let Self::Forwarding { end: Some(end), acknowledged: Some(number) } = *self
            && end == number
        {
            *self = Self::Engaged { released: end, stored: 0 };
        }
    }
}

impl Model for Chain {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let proxies = [Proxy::Engaged { released: 0, stored: 0 }; 2];
        let (data, acks) = ([0; 3], [0; 3]);
        vec![State { una: 0, proxies, arrived: 0, data, acks, crash: None }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let window = state.una..(state.una + BUFFER).min(BYTES);
        let unsent = window.filter(|byte| state.data[0] & (1 << byte) == 0);
        steps.extend(unsent.map(|byte| Step::Send { byte }));
        for hop in 0..3 {
            let sent = |bits: u8| (0..=BYTES).filter(move |bit| bits & (1 << bit) != 0);
            steps.extend(sent(state.data[hop]).map(|byte| Step::Data { hop, byte }));
            steps.extend(sent(state.acks[hop]).map(|number| Step::Ack { hop, number }));
        }
        if state.crash.is_none() {
            steps.extend((0..2).map(|proxy| Step::Crash { proxy }));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Send { byte } => next.data[0] |= 1 << byte,
            Step::Data { hop, byte } => next.arrive(hop, byte),
            Step::Ack { hop, number } => next.acknowledge(hop, number),
            Step::Crash { proxy } => {
                let Proxy::Engaged { released, stored } = state.proxies[proxy] else {
                    return None;
                };
                next.crash = Some((proxy, released, contiguous(stored, released)));
                next.proxies[proxy] = Proxy::Forwarding { end: None, acknowledged: None };
            }
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "only bytes at risk in the crashed proxy are lost",
                |_, state: &State| {
                    (0..BYTES).all(|byte| !state.is_lost(byte) || state.was_at_risk(byte))
                },
            ),
            Property::always("buffers are bounded", |_, state: &State| {
                state.proxies.iter().all(|proxy| match proxy {
                    Proxy::Engaged { stored, .. } => stored.count_ones() <= u32::from(BUFFER),
                    Proxy::Forwarding { .. } => true,
                })
            }),
            Property::sometimes("a byte arrives before an earlier one", |_, state: &State| {
                state.delivered() == 0 && state.arrived != 0
            }),
            Property::sometimes("a full buffer of the first proxy is lost", |_, state: &State| {
                state.crash == Some((0, 0, BUFFER)) && (0..BUFFER).all(|byte| state.is_lost(byte))
            }),
            Property::sometimes(
                "all data arrives although bytes were at risk",
                |_, state: &State| {
                    let lost = state.crash.is_some_and(|(_, first, end)| first < end);
                    lost && state.delivered() == BYTES
                },
            ),
            Property::sometimes(
                "all data arrives and all proxies are engaged",
                |_, state: &State| {
                    let is_engaged = |proxy: &Proxy| matches!(proxy, Proxy::Engaged { .. });
                    let all_arrived = state.una == BYTES && state.delivered() == BYTES;
                    state.crash.is_some() && state.proxies.iter().all(is_engaged) && all_arrived
                },
            ),
        ]
    }
}

#[test]
fn a_crash_loses_only_bytes_at_risk() {
    let checker = Chain.checker().spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
}
