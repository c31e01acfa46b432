//! Protocols without a broker: every message arrives.

use gridhaul_measure::protocol::Protocol;
use gridhaul_protocols::iec104;
use gridhaul_protocols::settings::{Direct, DirectKind, Modbus, Pattern, ReconnectPolicy};

use crate::{assert_complete, plan, run, turn};

/// Every protocol whose ends are both of this program, for messages of this length.
pub(crate) fn protocols(bytes: usize) -> Vec<Box<dyn Protocol>> {
    let reconnect = ReconnectPolicy::default();
    let kinds = [
        DirectKind::Iec104(iec104::Window::STANDARD),
        DirectKind::ZeroMq(Pattern::Pipeline),
        DirectKind::ZeroMq(Pattern::PublishSubscribe),
        DirectKind::Nanomsg,
        DirectKind::Synchrophasor(bytes),
        DirectKind::Dnp3 { poll: None },
    ];
    let direct =
        kinds.map(|kind| Box::new(Direct { kind, port: 0, nodelay: true, reconnect }) as _);
    let modbus = Box::new(Modbus { port: 0, nodelay: true, reconnect }) as Box<dyn Protocol>;
    direct.into_iter().chain([modbus]).collect()
}

#[test]
fn every_message_arrives_once_and_in_order() {
    let _turn = turn();
    for bytes in [132, 33] {
        for protocol in protocols(bytes) {
            let outcome =
                run(&gridhaul_measure::transfer::Plan { bytes, ..plan(2_000.0, 200) }, &*protocol);
            assert_complete(&outcome, 200);
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_with_the_limit() {
    let _turn = turn();
    let long = gridhaul_measure::transfer::Plan { bytes: 60_000, ..plan(10_000.0, 1) };
    for (protocol, limit) in [(0, "8192 B"), (6, "244 B")] {
        let outcome = run(&long, &*protocols(132)[protocol]);
        let counts = outcome.summary.counts;
        assert_eq!((counts.messages, counts.refused), (1, 1), "{counts:?}");
        assert!(outcome.refusal.is_some_and(|reason| reason.contains(limit)));
    }
}
