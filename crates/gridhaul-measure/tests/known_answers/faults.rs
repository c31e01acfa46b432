//! Faults of the end that receives.

use std::sync::atomic::AtomicBool;
use std::{thread, time};

use gridhaul_measure::method::Message;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::{Connected, Null, Protocol, ProtocolError, Received, Subscriber};
use gridhaul_measure::transfer::{Plan, measure};
use gridhaul_scenario::units::Duration;

use crate::plan;

/// The null protocol, whose receiving end fails after some messages.
#[derive(Debug)]
struct Failing {
    after: u32,
}

#[derive(Debug)]
struct FailingSubscriber {
    subscriber: Box<dyn Subscriber>,
    left: u32,
}

impl Protocol for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let Connected { publisher, subscriber } = Null.connect(sites)?;
        let subscriber = Box::new(FailingSubscriber { subscriber, left: self.after });
        Ok(Connected { publisher, subscriber })
    }
}

impl Subscriber for FailingSubscriber {
    #[expect(clippy::disallowed_methods, reason = "messages wait in real time")]
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        if self.left == 0 {
            // Messages are sent meanwhile, and arrive without being read.
            thread::sleep(time::Duration::from_millis(100));
            return Err(ProtocolError::Closed);
        }
        let received = self.subscriber.receive(message)?;
        self.left -= u32::from(received != Received::Nothing);
        Ok(received)
    }
}

#[test]
fn after_a_fault_of_the_receiver_messages_are_unknown_and_not_lost() {
    let mut rows = Vec::new();
    let mut log = |message: &Message| {
        rows.push(*message);
        Ok(())
    };
    let protocol = Failing { after: 2_000 };
    let stop = AtomicBool::new(false);
    let plan = Plan { horizon: Duration::from_millis(100), ..plan(1_000.0, 5_000) };
    let outcome = measure(&plan, &protocol, &Sites::loopback(), &mut log, &|_| {}, &stop).unwrap();
    assert_eq!(outcome.fault.as_deref(), Some("the connection was closed"));
    // 1,000 of the 2,000 messages that arrived are in the warm-up. At the fault, the horizon of
    // the last had not passed.
    let counts = outcome.summary.counts;
    assert_eq!((counts.lost, counts.refused), (0, 0), "{counts:?}");
    assert!((300..1_000).contains(&counts.messages), "{counts:?}");
    assert_eq!(rows.len() as u64, 1_000 + counts.messages);
    assert!(rows.iter().all(|row| row.received.is_some()));
    // The generator was told to end; what it had sent until then varies.
    assert!(
        (50..4_500).contains(&outcome.messages_not_counted),
        "{}",
        outcome.messages_not_counted
    );
}
