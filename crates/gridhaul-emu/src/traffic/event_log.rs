//! Event logs of kernel connections: the changes between two samples of `TCP_INFO` at the `from`
//! end.

use std::io;

use gridhaul_linux::TcpInfo;
use gridhaul_scenario::answer::{
    Cause, ConnectionEvent, EventLog, EventLogWriter, LossRecoveryState, Timer,
};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};

use super::samples::window;

/// The event logs of a run; usually none.
#[derive(Debug, Default)]
pub(crate) struct EventLogs(Vec<MemberLog>);

#[derive(Debug)]
struct MemberLog {
    /// Index of the member.
    member: usize,
    congestion_control: &'static str,
    last: Option<TcpInfo>,
    writer: EventLogWriter,
}

impl EventLogs {
    /// Logs the events of a member, whose stack has this congestion control.
    pub(super) fn add(
        &mut self,
        member: usize,
        congestion_control: &'static str,
        writer: EventLogWriter,
    ) {
        self.0.push(MemberLog { member, congestion_control, last: None, writer });
    }

    /// Logs the changes since the last sample of a member, if its events are logged.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        member: usize,
        info: &TcpInfo,
        interval: Duration,
    ) {
        let Some(log) = self.0.iter_mut().find(|log| log.member == member) else { return };
        let MemberLog { congestion_control, last, writer, .. } = log;
        let mut emit = |event| writer.push(now, FlowEnd::From, &event);
        match last.replace(*info) {
            Some(before) => compare(&before, info, &mut emit),
            None => {
                emit(ConnectionEvent::ParametersSet {
                    schema: ConnectionEvent::SCHEMA,
                    congestion_control,
                    loss_recovery: None,
                    mss_byte: info.mss,
                    sampling_interval_s: Some(interval.as_secs_f64()),
                });
                emit(ConnectionEvent::ConnectionStateUpdated {
                    old: "CLOSED",
                    new: state(info.state),
                });
                emit(window_event(info, Cause::Start));
            }
        }
    }

    /// The finished logs.
    pub(crate) fn into_logs(self) -> io::Result<Vec<EventLog>> {
        self.0.into_iter().map(|log| log.writer.into_log()).collect()
    }
}

/// The events between two samples, in the order of those of the simulator.
fn compare(before: &TcpInfo, after: &TcpInfo, emit: &mut dyn FnMut(ConnectionEvent)) {
    let cause = Cause::Sample;
    let rto_s = after.rto.as_secs_f64();
    if before.state != after.state {
        let (old, new) = (state(before.state), state(after.state));
        emit(ConnectionEvent::ConnectionStateUpdated { old, new });
    }
    for _ in before.timeouts..after.timeouts {
        let rto_s = Some(rto_s);
        emit(ConnectionEvent::TimerExpired { timer: Timer::Retransmission, rto_s });
    }
    if before.srtt != after.srtt {
        let srtt_s = after.srtt.as_secs_f64();
        emit(ConnectionEvent::RttSampled { rtt_s: None, srtt_s, rto_s });
    }
    let (first_seq, end_seq) = (None, None);
    if after.lost > before.lost {
        let segments = u64::from(after.lost - before.lost);
        emit(ConnectionEvent::SegmentsLost { first_seq, end_seq, segments, cause });
    }
    if after.retransmissions > before.retransmissions {
        let segments = u64::from(after.retransmissions - before.retransmissions);
        emit(ConnectionEvent::SegmentsRetransmitted { first_seq, end_seq, segments, cause });
    }
    let (old, new) = (recovery_state(before), recovery_state(after));
    if old != new {
        emit(ConnectionEvent::LossRecoveryStateUpdated { old, new, cause });
    }
    let (old, new) = (congestion_state(before), congestion_state(after));
    if old != new {
        emit(ConnectionEvent::CongestionStateUpdated { old, new, cause });
    }
    if (before.cwnd, before.ssthresh) != (after.cwnd, after.ssthresh) {
        emit(window_event(after, cause));
    }
}

fn window_event(info: &TcpInfo, cause: Cause) -> ConnectionEvent {
    let window = window(info);
    ConnectionEvent::CongestionWindowUpdated {
        cwnd_byte: window.cwnd,
        ssthresh_byte: window.ssthresh,
        in_flight_byte: window.in_flight,
        cause,
    }
}

const fn congestion_state(info: &TcpInfo) -> &'static str {
    if info.cwnd < info.ssthresh { "slow_start" } else { "congestion_avoidance" }
}

/// `enum tcp_ca_state` (`<linux/tcp.h>`).
const fn recovery_state(info: &TcpInfo) -> LossRecoveryState {
    match info.loss_recovery {
        1 => LossRecoveryState::Disorder,
        2 => LossRecoveryState::Cwr,
        3 => LossRecoveryState::Recovery,
        4 => LossRecoveryState::Loss,
        _ => LossRecoveryState::Open,
    }
}

/// Names of RFC 9293 for the states of `<net/tcp_states.h>`.
fn state(number: u8) -> &'static str {
    const NAMES: [&str; 13] = [
        "CLOSED",
        "ESTABLISHED",
        "SYN-SENT",
        "SYN-RECEIVED",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "CLOSED",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
        // TCP_NEW_SYN_RECV
        "SYN-RECEIVED",
    ];
    NAMES.get(usize::from(number)).copied().unwrap_or("CLOSED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(before: &TcpInfo, after: &TcpInfo) -> Vec<ConnectionEvent> {
        let mut events = Vec::new();
        compare(before, after, &mut |event| events.push(event));
        events
    }

    #[test]
    fn only_changes_between_samples_are_events() {
        let before = TcpInfo { state: 1, cwnd: 10, ssthresh: 8, mss: 100, ..TcpInfo::default() };
        assert_eq!(events(&before, &before), []);
        let after = TcpInfo {
            timeouts: 1,
            lost: 3,
            retransmissions: 1,
            loss_recovery: 4,
            cwnd: 1,
            ssthresh: 5,
            unacked: 4,
            rto: Duration::from_millis(400),
            ..before
        };
        let (first_seq, end_seq, cause) = (None, None, Cause::Sample);
        let timer = Timer::Retransmission;
        let expected = [
            ConnectionEvent::TimerExpired { timer, rto_s: Some(0.4) },
            ConnectionEvent::SegmentsLost { first_seq, end_seq, segments: 3, cause },
            ConnectionEvent::SegmentsRetransmitted { first_seq, end_seq, segments: 1, cause },
            ConnectionEvent::LossRecoveryStateUpdated {
                old: LossRecoveryState::Open,
                new: LossRecoveryState::Loss,
                cause,
            },
            ConnectionEvent::CongestionStateUpdated {
                old: "congestion_avoidance",
                new: "slow_start",
                cause,
            },
            ConnectionEvent::CongestionWindowUpdated {
                cwnd_byte: 100,
                ssthresh_byte: Some(500),
                in_flight_byte: 400,
                cause,
            },
        ];
        assert_eq!(events(&before, &after), expected);
    }
}
