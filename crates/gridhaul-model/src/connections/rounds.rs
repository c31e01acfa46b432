//! The time of a flight whose packets exceed a window: rounds of slow start.

use gridhaul_core::tcp::{ByteCounting, IdleRestart, StackParams};

use super::exchange::{Flight, Transmissions};
use super::queues::{FlowLoad, Network};
use crate::ack_delay::AckDelay;
use crate::steady::WindowGrowth;

/// The windows of a sender in segments, and the acknowledgements of its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Windows {
    /// At the start of a connection, and after a silence on an open one.
    pub initial: f64,
    pub after_silence: f64,
    /// The receive window.
    largest: f64,
    growth: WindowGrowth,
    /// Segments per acknowledgement that increases the window.
    acked_by_each: f64,
    ack_delay: AckDelay,
    /// Whether Nagle's algorithm delays a short segment while full ones are outstanding.
    pub nagle: bool,
    mss: f64,
}

impl Windows {
    pub(super) fn new(stack: &StackParams) -> Self {
        let segments = |bytes: u32| f64::from((bytes / stack.mss.max(1)).max(1));
        let largest = segments(stack.receive_window);
        let initial = segments(stack.initial_window).min(largest);
        let after_silence = match stack.policy.idle_restart {
            _ if !stack.restart_after_idle => largest,
            IdleRestart::OneSegment => 1.0,
            IdleRestart::InitialWindow | IdleRestart::Decay => initial,
        };
        let is_delayed = !stack.delayed_ack.is_zero();
        let halves_growth = is_delayed && stack.byte_counting != ByteCounting::PerAcked;
        Self {
            initial,
            after_silence,
            largest,
            growth: WindowGrowth::of(stack),
            acked_by_each: if halves_growth { f64::from(stack.ack_every) } else { 1.0 },
            ack_delay: AckDelay::new(stack),
            nagle: stack.nagle && !stack.policy.nagle_by_minshall,
            mss: f64::from(stack.mss),
        }
    }

    /// The packets of a message in a direction, as batches: those of a round are transmitted
    /// together, others (acknowledgements, FIN) alone.
    pub(super) fn batches(&self, packets: &Transmissions, direction: usize) -> Vec<Vec<f64>> {
        let mut single = packets.directions[direction].clone();
        let mut batches = Vec::new();
        let flights = packets.flights.iter().filter(|flight| flight.is_forward == (direction == 0));
        for flight in flights {
            for bytes in &flight.packets {
                if let Some(index) = single.iter().position(|other| other == bytes) {
                    single.swap_remove(index);
                }
            }
            batches.extend(self.rounds(flight));
        }
        batches.extend(single.into_iter().map(|bytes| vec![bytes]));
        batches
    }

    /// The packets of a flight, of which each round contains as many as the window permits.
    fn rounds(&self, flight: &Flight) -> Vec<Vec<f64>> {
        let waiting = usize::from(flight.last_waits);
        let (mut left, last) = flight.packets.split_at(flight.packets.len() - waiting);
        let leading = flight.packets.len() - flight.segments;
        let (mut rounds, mut window) = (Vec::new(), flight.window);
        let mut fitting = window as usize + leading;
        while left.len() > fitting.max(1) {
            let (sent, rest) = left.split_at(fitting.max(1));
            rounds.push(sent.to_vec());
            left = rest;
            window = self.growth.after(window, self.acked_by_each, rounds.len() as u32 - 1);
            window = window.min(self.largest);
            fitting = window as usize;
        }
        rounds
            .extend([left, last].into_iter().filter(|part| !part.is_empty()).map(<[f64]>::to_vec));
        rounds
    }

    /// Whether a segment with this payload is no full one.
    pub(super) fn is_short(&self, payload: f64) -> bool {
        payload < self.mss
    }

    /// Time for which the acknowledgement of a single segment is delayed, in seconds.
    pub(super) fn acknowledgement_delay_s(&self) -> f64 {
        self.ack_delay.of_one_s()
    }

    /// Whether acknowledgements of single segments are delayed.
    pub(super) fn delays_acknowledgements(&self) -> bool {
        self.ack_delay.of_one_s() > 0.0
    }
}

impl Network {
    /// Mean time of a flight: its packets are transmitted one after another on each link. Packets
    /// beyond the window wait for acknowledgements, and so does a short last one with Nagle's
    /// algorithm.
    pub(super) fn flight_s(&self, flow: &FlowLoad, flight: &Flight) -> f64 {
        let packets = &flight.packets[..];
        let Some((last, earlier)) = packets.split_last() else { return 0.0 };
        if !flight.last_waits {
            return self.rounds_s(flow, flight, packets);
        }
        let full = flight.segments.saturating_sub(1) as u32;
        let longest = earlier.iter().copied().fold(0.0, f64::max);
        let spacing_s = self.slowest_s(flow, flight.is_forward, longest);
        let delayed_s = flow.windows.ack_delay.of_last_s(full, spacing_s);
        let ack = self.crossing_s(flow, !flight.is_forward, &[flight.header]);
        let last_s = self.crossing_s(flow, flight.is_forward, &[*last]);
        self.rounds_s(flow, flight, earlier) + ack + delayed_s + last_s
    }

    /// Time of the packets of a flight, of which each round contains as many as the window permits.
    fn rounds_s(&self, flow: &FlowLoad, flight: &Flight, packets: &[f64]) -> f64 {
        let windows = &flow.windows;
        let is_segment = |bytes: &&f64| **bytes > flight.header;
        let segments = packets.iter().filter(is_segment).count();
        let mut window = flight.window;
        if segments as f64 <= window.floor() {
            return self.crossing_s(flow, flight.is_forward, packets);
        }
        let full = packets.iter().copied().fold(0.0, f64::max);
        let spacing_s = self.slowest_s(flow, flight.is_forward, full);
        let rtt_s = self.crossing_s(flow, flight.is_forward, &[full])
            + self.crossing_s(flow, !flight.is_forward, &[flight.header]);
        let (mut time_s, mut left, mut round) = (0.0, segments, 0);
        while left as f64 > window.floor() && window * spacing_s < rtt_s {
            let sent = window as usize;
            time_s += rtt_s + windows.ack_delay.of_first_s(sent as u32, spacing_s);
            left -= sent;
            window = windows.growth.after(window, windows.acked_by_each, round);
            window = window.min(windows.largest);
            round += 1;
        }
        time_s + self.crossing_s(flow, flight.is_forward, &packets[packets.len() - left..])
    }
}
