//! Every way that a chain of two reflecting units can go with one crash, on a model.
//!
//! The model is one direction of data over sender, two units and receiver, with segments of one
//! byte. It has what `Reflect` decides about bytes: taken in order and as far as the buffer goes,
//! acknowledged at once, kept until the next hop acknowledges, sent again at will; after a crash
//! everything passes until all that has passed is acknowledged. It leaves out SYN, FIN, windows in
//! acknowledgements, selective acknowledgements and time. Hops lose, repeat and reorder as they
//! like: what was ever sent may arrive at any time, any number of times, or never. That the code
//! does what the model does is not proved here; the property tests of `pep` drive the code.

use stateright::{Checker, Model, Property};

/// Bytes of the stream, and of the buffer of a unit and the receiver's window.
const BYTES: u8 = 3;
const BUFFER: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    /// Bytes before `taken` are acknowledged to the hop before, those before `released` by the next.
    Engaged { taken: u8, released: u8 },
    /// Highest byte that has passed and highest acknowledgement that has, each plus one.
    Passing { top: Option<u8>, acknowledged: Option<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// First byte that is not acknowledged to the sender.
    una: u8,
    units: [Unit; 2],
    delivered: u8,
    /// What was ever sent over each hop: a bit for each byte, and for each acknowledgement number.
    data: [u8; 3],
    acks: [u8; 3],
    /// The unit that has crashed, and the bytes that it had taken and that were not released.
    crash: Option<(usize, u8, u8)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Send { hop: usize, byte: u8 },
    Data { hop: usize, byte: u8 },
    Ack { hop: usize, number: u8 },
    Crash { unit: usize },
}

struct Chain;

impl State {
    /// Bytes that the node before a hop may send over it.
    fn sendable(&self, hop: usize) -> std::ops::Range<u8> {
        match hop.checked_sub(1).map(|unit| self.units[unit]) {
            None => self.una..(self.una + BUFFER).min(BYTES),
            Some(Unit::Engaged { taken, released }) => released..taken,
            Some(Unit::Passing { .. }) => 0..0,
        }
    }

    fn arrive(&mut self, hop: usize, byte: u8) {
        let Some(unit) = self.units.get_mut(hop) else {
            self.delivered += u8::from(byte == self.delivered);
            self.acks[hop] |= 1 << self.delivered;
            return;
        };
        match unit {
            Unit::Engaged { taken, released } => {
                *taken += u8::from(byte == *taken && *taken - *released < BUFFER);
                self.acks[hop] |= 1 << *taken;
            }
            Unit::Passing { top, .. } => {
                *top = (*top).max(Some(byte + 1));
                self.data[hop + 1] |= 1 << byte;
                unit.settle();
            }
        }
    }

    fn acknowledge(&mut self, hop: usize, number: u8) {
        let Some(unit) = hop.checked_sub(1) else {
            self.una = self.una.max(number);
            return;
        };
        match &mut self.units[unit] {
            // One of something that was never sent is not acceptable.
            Unit::Engaged { taken, released } if number <= *taken => {
                *released = (*released).max(number);
            }
            Unit::Engaged { .. } => {}
            Unit::Passing { acknowledged, .. } => {
                *acknowledged = (*acknowledged).max(Some(number));
                self.acks[hop - 1] |= 1 << number;
                self.units[unit].settle();
            }
        }
    }

    /// Whether a byte is acknowledged to the sender, has not arrived, and no unit keeps it.
    fn is_gone(&self, byte: u8) -> bool {
        let kept = self.units.iter().any(|unit| match unit {
            Unit::Engaged { taken, released } => (*released..*taken).contains(&byte),
            Unit::Passing { .. } => false,
        });
        (self.delivered..self.una).contains(&byte) && !kept
    }

    fn crashed_with(&self, byte: u8) -> bool {
        self.crash.is_some_and(|(_, released, taken)| (released..taken).contains(&byte))
    }
}

impl Unit {
    fn settle(&mut self) {
        if let Self::Passing { top: Some(top), acknowledged: Some(number) } = *self
            && top == number
        {
            *self = Self::Engaged { taken: top, released: top };
        }
    }
}

impl Model for Chain {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let units = [Unit::Engaged { taken: 0, released: 0 }; 2];
        let (data, acks) = ([0; 3], [0; 3]);
        vec![State { una: 0, units, delivered: 0, data, acks, crash: None }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for hop in 0..3 {
            let fresh = state.sendable(hop).filter(|byte| state.data[hop] & (1 << byte) == 0);
            steps.extend(fresh.map(|byte| Step::Send { hop, byte }));
            let sent = |bits: u8| (0..=BYTES).filter(move |bit| bits & (1 << bit) != 0);
            steps.extend(sent(state.data[hop]).map(|byte| Step::Data { hop, byte }));
            steps.extend(sent(state.acks[hop]).map(|number| Step::Ack { hop, number }));
        }
        if state.crash.is_none() {
            steps.extend((0..2).map(|unit| Step::Crash { unit }));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Send { hop, byte } => next.data[hop] |= 1 << byte,
            Step::Data { hop, byte } => next.arrive(hop, byte),
            Step::Ack { hop, number } => next.acknowledge(hop, number),
            Step::Crash { unit } => {
                let Unit::Engaged { taken, released } = state.units[unit] else { return None };
                next.crash = Some((unit, released, taken));
                next.units[unit] = Unit::Passing { top: None, acknowledged: None };
            }
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("only what the crashed unit alone had is gone", |_, state: &State| {
                (0..BYTES).all(|byte| !state.is_gone(byte) || state.crashed_with(byte))
            }),
            Property::always("buffers are bounded", |_, state: &State| {
                state.units.iter().all(|unit| match unit {
                    Unit::Engaged { taken, released } => taken - released <= BUFFER,
                    Unit::Passing { .. } => true,
                })
            }),
            Property::sometimes("a full buffer of the first unit is gone", |_, state: &State| {
                state.crash == Some((0, 0, BUFFER)) && (0..BUFFER).all(|byte| state.is_gone(byte))
            }),
            Property::sometimes("one of the second unit is gone", |_, state: &State| {
                state.crash == Some((1, 0, BUFFER)) && (0..BUFFER).all(|byte| state.is_gone(byte))
            }),
            Property::sometimes("what had been forwarded arrives", |_, state: &State| {
                let lost = state.crash.is_some_and(|(_, released, taken)| released < taken);
                lost && state.delivered == BYTES
            }),
            Property::sometimes("all arrives through a unit that came back", |_, state: &State| {
                let back = |unit: &Unit| matches!(unit, Unit::Engaged { .. });
                let all = state.una == BYTES && state.delivered == BYTES;
                state.crash.is_some() && state.units.iter().all(back) && all
            }),
        ]
    }
}

#[test]
fn a_crash_loses_what_the_unit_alone_had_and_nothing_else() {
    let checker = Chain.checker().spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
}
