//! Shares of the second half of the backlog.

use gridhaul_protocols::framing::{Delimiter, MessageFraming};

use super::settings;
use crate::collector::{Collector, CollectorState, Settings, Tier};
use crate::log::Folder;
use crate::protocol::Identity;

#[test]
fn a_meter_uses_up_its_share_while_incomplete_messages_fill_the_second_half() {
    let settings = Settings {
        at_risk: 20_000,
        at_risk_per_meter: 20_000,
        backlog: 10_000,
        ..settings(Tier::Server)
    };
    let mut collector: Collector<Folder> =
        Collector::new(settings, 1, &CollectorState::default(), None);
    let lines = || MessageFraming::Delimiter(Delimiter::new(b'\n', 100_000.try_into().unwrap()));
    let [first, second] = [0, 1].map(|_| collector.open_meter(Identity::default(), lines()));
    collector.handle_data(first, &[b'x'; 6_000]).unwrap();
    assert!(collector.backlog_size() < 1_000, "the message is no record");
    let mut sent = 0;
    loop {
        let acceptable = collector.acceptable(second) as usize;
        if acceptable == 0 {
            break;
        }
        collector.handle_data(second, &vec![b'x'; acceptable]).unwrap();
        sent += acceptable;
    }
    // As much as it leaves free: half of what the first message has left.
    assert!((1_500..=2_000).contains(&sent), "{sent}");
    assert!(collector.acceptable(first) > 500, "{}", collector.acceptable(first));
}
