//! Observer of a connection: derives events from the difference between two of its states.
//!
//! The caller reports each step of the connection: a segment, a timer or data that it has handled
//! ([`ConnectionObserver::on_handled`]), and a poll ([`ConnectionObserver::on_polled`]). The
//! connection itself has no state for its observer, so that a connection without one is as fast and
//! as small as before.

mod cause;
mod losses;

use gridhaul_scenario::answer::{Cause, ConnectionEvent, LossRecoveryState, Timer};
use gridhaul_scenario::units::{Duration, Instant};

use self::cause::{RecoveryStates, Step};
use self::losses::LostSegments;
use super::connection::{Connection, State};
use super::segment::{Flags, Segment};
use super::sender::SenderSnapshot;

/// Observes one end of a connection.
#[derive(Debug, Clone)]
pub struct ConnectionObserver {
    started: bool,
    state: State,
    sender: Option<SenderSnapshot>,
    recovery: LossRecoveryState,
    /// All data before this position was outstanding at the last timeout.
    repair_until: u64,
    lost: LostSegments,
    has_gap: bool,
    /// The delayed-ACK timer has expired, and the acknowledgement was not sent yet.
    is_ack_due: bool,
}

impl ConnectionObserver {
    /// An observer of a connection that has not handled anything yet.
    #[must_use]
    pub fn new(connection: &Connection) -> Self {
        // An endpoint is created in the state in which it sends its SYN.
        let state = match connection.state() {
            State::SynSent => State::Closed,
            state => state,
        };
        Self {
            started: false,
            state,
            sender: None,
            recovery: LossRecoveryState::Open,
            repair_until: 0,
            lost: LostSegments::default(),
            has_gap: false,
            is_ack_due: false,
        }
    }

    /// The connection has handled a segment, an expired timer or data of the application.
    pub fn on_handled(
        &mut self,
        now: Instant,
        connection: &Connection,
        emit: &mut dyn FnMut(ConnectionEvent),
    ) {
        self.compare(connection, Step::Handled(now), emit);
        let was_due = self.is_ack_due;
        self.is_ack_due = connection.receiver().is_delayed_ack_due(now);
        if self.is_ack_due && !was_due {
            let timer = Timer::DelayedAcknowledgement;
            emit(ConnectionEvent::TimerExpired { timer, rto_s: None });
        }
    }

    /// The connection was polled for a segment to send, which may be `sent`.
    pub fn on_polled(
        &mut self,
        connection: &Connection,
        sent: Option<&Segment>,
        emit: &mut dyn FnMut(ConnectionEvent),
    ) {
        if let (Some(segment), Some(before)) = (sent, &self.sender) {
            let first = connection.position_of(segment.seq);
            let fin = segment.flags.has(Flags::FIN) || segment.flags.has(Flags::SYN);
            let end = first + u64::from(segment.len) + u64::from(fin);
            if first < before.next && first < end {
                let cause = self.cause_of_retransmission(before);
                let (first_seq, end_seq) = (Some(first), Some(end));
                emit(ConnectionEvent::SegmentsRetransmitted {
                    first_seq,
                    end_seq,
                    segments: 1,
                    cause,
                });
            }
        }
        self.compare(connection, Step::Polled, emit);
    }

    const fn cause_of_retransmission(&self, before: &SenderSnapshot) -> Cause {
        if before.tail_loss_probe_due {
            return Cause::TailLossProbe;
        }
        match self.recovery {
            LossRecoveryState::Loss => Cause::RetransmissionTimeout,
            _ => Cause::FastRetransmit,
        }
    }

    fn compare(
        &mut self,
        connection: &Connection,
        step: Step,
        emit: &mut dyn FnMut(ConnectionEvent),
    ) {
        let params = connection.params();
        if !self.started {
            self.started = true;
            emit(ConnectionEvent::ParametersSet {
                schema: ConnectionEvent::SCHEMA,
                congestion_control: params.congestion_control.name(),
                loss_recovery: Some(params.recovery),
                mss_byte: params.mss,
                sampling_interval_s: None,
            });
        }
        if connection.state() != self.state {
            let (old, new) = (self.state.name(), connection.state().name());
            emit(ConnectionEvent::ConnectionStateUpdated { old, new });
            self.state = connection.state();
        }
        if let Some(sender) = connection.sender() {
            let after = sender.snapshot(params);
            match self.sender.replace(after) {
                Some(before) => {
                    self.compare_senders(&before, &after, params.mss, step, emit, || {
                        sender.lost_segments()
                    });
                }
                None => emit(window_event(&after, Cause::Start)),
            }
        }
        self.compare_receivers(connection, emit);
    }

    fn compare_senders<L: Iterator<Item = (u64, u64)>>(
        &mut self,
        before: &SenderSnapshot,
        after: &SenderSnapshot,
        mss: u32,
        step: Step,
        emit: &mut dyn FnMut(ConnectionEvent),
        lost: impl Fn() -> L,
    ) {
        if after.stats.timeouts > before.stats.timeouts {
            self.repair_until = after.next;
        }
        let recovery = RecoveryStates { old: self.recovery, new: self.recovery_state(after) };
        self.recovery = recovery.new;
        let cause = cause::of(step, before, after, recovery);
        let rto_s = after.rto.as_secs_f64();
        if let Some(timer) = expired_timer(before, after, cause) {
            emit(ConnectionEvent::TimerExpired { timer, rto_s: Some(rto_s) });
        }
        emit_rtt(before, after, emit);
        self.lost.update(lost(), |(first, end), segments| {
            let (first_seq, end_seq) = (Some(first), Some(end));
            emit(ConnectionEvent::SegmentsLost { first_seq, end_seq, segments, cause });
        });
        let RecoveryStates { old, new } = recovery;
        if old != new {
            emit(ConnectionEvent::LossRecoveryStateUpdated { old, new, cause });
        }
        if before.congestion_state != after.congestion_state {
            let (old, new) = (before.congestion_state, after.congestion_state);
            emit(ConnectionEvent::CongestionStateUpdated { old, new, cause });
        }
        if (before.cwnd, before.ssthresh) != (after.cwnd, after.ssthresh) {
            emit(window_event(after, cause));
        }
        let window_byte = u64::from(after.peer_window);
        match (before.peer_window < mss, after.peer_window < mss) {
            (false, true) => emit(ConnectionEvent::SendWindowClosed { window_byte }),
            (true, false) => emit(ConnectionEvent::SendWindowOpened { window_byte }),
            _ => {}
        }
    }

    fn recovery_state(&self, after: &SenderSnapshot) -> LossRecoveryState {
        let repairs_timeout = after.repairs_timeout.unwrap_or(after.una < self.repair_until);
        if after.recovering {
            LossRecoveryState::Recovery
        } else if repairs_timeout {
            LossRecoveryState::Loss
        } else if after.duplicates > 0 || after.sacked > 0 {
            LossRecoveryState::Disorder
        } else {
            LossRecoveryState::Open
        }
    }

    fn compare_receivers(
        &mut self,
        connection: &Connection,
        emit: &mut dyn FnMut(ConnectionEvent),
    ) {
        let receiver = connection.receiver();
        if receiver.has_gap() == self.has_gap {
            return;
        }
        self.has_gap = receiver.has_gap();
        let expected_seq = receiver.next();
        emit(if self.has_gap {
            let out_of_order_byte = receiver.out_of_order_bytes();
            ConnectionEvent::GapOpened { expected_seq, out_of_order_byte }
        } else {
            ConnectionEvent::GapFilled { expected_seq }
        });
    }
}

/// The timer that has expired, if any.
fn expired_timer(before: &SenderSnapshot, after: &SenderSnapshot, cause: Cause) -> Option<Timer> {
    if cause == Cause::RetransmissionTimeout {
        Some(Timer::Retransmission)
    } else if cause == Cause::ReorderingTimeout {
        Some(Timer::Reordering)
    } else if after.tail_loss_probe_due && !before.tail_loss_probe_due {
        Some(Timer::TailLossProbe)
    } else if after.persist_expirations > before.persist_expirations {
        Some(Timer::Persist)
    } else {
        None
    }
}

fn emit_rtt(
    before: &SenderSnapshot,
    after: &SenderSnapshot,
    emit: &mut dyn FnMut(ConnectionEvent),
) {
    let count = after.stats.rtt_count - before.stats.rtt_count;
    if count > 0 {
        let sum = after.stats.rtt_sum_ns - before.stats.rtt_sum_ns;
        emit(ConnectionEvent::RttSampled {
            rtt_s: Some(Duration::from_nanos(sum / u64::from(count)).as_secs_f64()),
            srtt_s: after.srtt.unwrap_or_default().as_secs_f64(),
            rto_s: after.rto.as_secs_f64(),
        });
    }
}

fn window_event(sender: &SenderSnapshot, cause: Cause) -> ConnectionEvent {
    let limited = sender.ssthresh != u32::MAX;
    ConnectionEvent::CongestionWindowUpdated {
        cwnd_byte: u64::from(sender.cwnd),
        ssthresh_byte: limited.then(|| u64::from(sender.ssthresh)),
        in_flight_byte: sender.in_flight,
        cause,
    }
}

#[cfg(test)]
mod tests;
