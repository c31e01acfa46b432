//! Sampled Values and GOOSE over emulated Ethernet links, and UDP over IP links: what the links do
//! to messages is counted exactly.

use std::sync::Mutex;

use gridhaul_core::link::LinkAccount;
use gridhaul_core::wire::VlanTag;
use gridhaul_measure::method::{Message, Proportion, Schedule, Summary};
use gridhaul_measure::place::{Carrier, Sites};
use gridhaul_measure::protocol::{
    Connected, DataSet, FrameIdentity, GooseControlBlock, Protocol, ProtocolError, Publisher,
    Refused, SampledValueStream, Udp,
};
use gridhaul_measure::settings::Settings;
use gridhaul_measure::transfer::{Outcome, Plan};
use gridhaul_protocols::goose::RetransmissionSchedule;
use gridhaul_protocols::settings::LIGHT_EDITION_MESSAGE;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use crate::{
    Measured, longest_gap_ms, median, on_links, plan, repeated, run, scenario, turn, undisturbed,
};

fn identity(application: u16) -> FrameIdentity {
    let vlan = Some(VlanTag { id: 7, priority: 4, ..VlanTag::default() });
    FrameIdentity { vlan, application }
}

fn sampled_values() -> SampledValueStream {
    SampledValueStream { identity: identity(0x4000), id: "stream".into(), data_set: DataSet::Raw }
}

fn goose(retransmission: Option<RetransmissionSchedule>) -> GooseControlBlock {
    let reference = "IED/LLN0$GO$gcb".into();
    GooseControlBlock { identity: identity(0x1000), reference, retransmission }
}

/// A run over Ethernet links, or over IP links with UDP, and the counters of the forward direction.
fn measured(
    scenario: &Scenario,
    protocol: &dyn Protocol,
    rate: f64,
    messages: u64,
) -> (Outcome, Vec<Message>, LinkAccount) {
    let work = |sites: &Sites<'_>| run(&plan(rate, messages), protocol, sites);
    let carrier = if protocol.name() == Udp.name() { Carrier::Packets } else { Carrier::Frames };
    let ((outcome, rows), counters) = on_links(scenario, "test", carrier, work).unwrap();
    (outcome, rows, counters[0].1)
}

#[test]
fn frames_cross_a_link_with_their_tags_after_its_delay() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\"", "delay = \"5 ms\"");
    for protocol in [&sampled_values() as &dyn Protocol, &goose(None)] {
        let is_expected = |summary: &Summary| (5.0..6.0).contains(&median(summary));
        let Measured { outcome, is_disturbed, .. } = repeated(is_expected, || {
            let (outcome, rows, _) = measured(&scenario, protocol, 1_000.0, 200);
            (outcome, rows)
        });
        let counts = outcome.summary.counts;
        assert_eq!((counts.messages, counts.lost, counts.duplicates), (200, 0, 0), "{counts:?}");
        let (is_close, median) = (is_expected(&outcome.summary), median(&outcome.summary));
        assert!(is_close || is_disturbed && median >= 5.0, "{}: {median} ms", protocol.name());
    }
}

#[test]
fn samples_of_9_2_le_pass_at_the_rate_of_the_data_set() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"1 ms\"", "delay = \"1 ms\"");
    let data_set = DataSet::LightEdition { per_second: 4_000 };
    let protocol = SampledValueStream { data_set, ..sampled_values() };
    // With the warm-up of a second the sample counter restarts once.
    let plan = Plan { bytes: LIGHT_EDITION_MESSAGE, ..plan(4_000.0, 400) };
    let work = |sites: &Sites<'_>| run(&plan, &protocol, sites);
    let ((outcome, _), _) = on_links(&scenario, "test", Carrier::Frames, work).unwrap();
    let counts = outcome.summary.counts;
    assert_eq!((counts.messages, counts.lost, counts.corrupt), (400, 0, 0), "{counts:?}");
}

#[test]
fn losses_duplicates_and_corruption_are_those_of_the_link() {
    let Some(_turn) = turn(&[]) else { return };
    let (stream, events) = (sampled_values(), goose(None));
    for (protocol, key) in [
        (&events as &dyn Protocol, "loss = { bernoulli = \"3 %\" }"),
        (&stream, "duplicate = \"4 %\""),
        (&stream, "corrupt_undetected = \"5 %\""),
        (&Udp, "loss = { bernoulli = \"3 %\" }"),
        (&Udp, "duplicate = \"4 %\""),
        (&Udp, "corrupt_undetected = \"5 %\""),
    ] {
        let scenario = scenario(&format!("delay = \"2 ms\", {key}"), "delay = \"2 ms\"");
        let (_, rows, link) = measured(&scenario, protocol, 1_000.0, 300);
        let sum = |of: &dyn Fn(&Message) -> u32| u64::from(rows.iter().map(of).sum::<u32>());
        assert_eq!((rows.len() as u64, link.offered), (1_300, 1_300), "{link:?}");
        assert_eq!(sum(&|row| u32::from(row.copies + row.corrupt_copies == 0)), link.dropped_loss);
        assert_eq!(sum(&|row| row.copies.saturating_sub(1)), link.duplicates);
        assert_eq!(sum(&|row| row.corrupt_copies), link.corrupted);
        assert!(link.dropped_loss + link.duplicates + link.corrupted > 10, "{key}: {link:?}");
    }
}

/// Holds every tenth message back until the next one has been sent.
#[derive(Debug)]
struct Swapping<P>(P);

#[derive(Debug)]
struct SwappingPublisher {
    publisher: Box<dyn Publisher>,
    number: u64,
    held: Option<Vec<u8>>,
}

impl<P: Protocol> Protocol for Swapping<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn settings(&self) -> Settings {
        self.0.settings()
    }
    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let Connected { publisher, subscriber } = self.0.connect(sites)?;
        let publisher = Box::new(SwappingPublisher { publisher, number: 0, held: None });
        Ok(Connected { publisher, subscriber })
    }
}

impl Publisher for SwappingPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.number += 1;
        if self.number % 10 == 1 {
            self.held = Some(message.to_vec());
            return Ok(());
        }
        self.publisher.publish(message)?;
        self.held.take().map_or(Ok(()), |held| self.publisher.publish(&held))
    }
}

#[test]
fn reordered_messages_are_counted_exactly() {
    let Some(_turn) = turn(&[]) else { return };
    let plan = plan(1_000.0, 300);
    let frames = Swapping(sampled_values());
    for protocol in [&frames as &dyn Protocol, &Swapping(Udp)] {
        let (outcome, _) = run(&plan, protocol, &Sites::loopback());
        let counts = outcome.summary.counts;
        let found = (counts.reordered, counts.lost, counts.duplicates);
        assert_eq!(found, (30, 0, 0), "{}: {counts:?}", protocol.name());
    }
}

#[test]
fn an_outage_is_measured_to_one_message_interval() {
    let Some(_turn) = turn(&[]) else { return };
    let outage = "delay = \"2 ms\", outage = [{ start = \"1.5 s\", length = \"500 ms\" }]";
    let scenario = scenario(outage, "delay = \"2 ms\"");
    let is_expected = |summary: &Summary| (490.0..511.0).contains(&longest_gap_ms(summary));
    let (outcome, _) = undisturbed(is_expected, || {
        let (outcome, rows, _) = measured(&scenario, &sampled_values(), 100.0, 130);
        (outcome, rows)
    });
    assert!(is_expected(&outcome.summary), "{} ms", longest_gap_ms(&outcome.summary));
    assert!((49..=51).contains(&outcome.summary.counts.lost), "{:?}", outcome.summary.counts);
}

#[test]
fn a_retransmission_replaces_a_lost_event() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario =
        scenario("delay = \"1 ms\", loss = { bernoulli = \"30 %\" }", "delay = \"1 ms\"");
    let schedule = RetransmissionSchedule {
        shortest: Duration::from_millis(2),
        factor: 2.0,
        longest: Duration::from_secs(1),
    };
    let protocol = goose(Some(schedule));
    let (outcome, _, _) = measured(&scenario, &protocol, 200.0, 400);
    let summary = outcome.summary;
    // Event and retransmission are both lost; the next event follows before a second
    // retransmission.
    let [low, high] = summary.loss().bounds(0.9999);
    assert!(low <= 0.09 && high >= 0.09, "{:?}", summary.counts);
    let late = summary.from_send.count_above(Duration::from_micros(2_900));
    let late = Proportion { count: late, of: summary.from_send.count() };
    let [low, high] = late.bounds(0.9999);
    // 0.3 · 0.7 of all events arrive by retransmission, of 0.91 that arrive.
    assert!(low <= 0.231 && high >= 0.231, "{late:?}");
    assert_eq!(summary.counts.duplicates, 0, "{:?}", summary.counts);
}

/// Frames with another tag are no messages of the stream.
#[test]
fn a_frame_with_another_tag_is_corrupt() {
    #[derive(Debug)]
    struct Mixed(Mutex<Option<Connected>>);
    impl Protocol for Mixed {
        fn name(&self) -> &'static str {
            "mixed"
        }
        fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
            let untagged = FrameIdentity { vlan: None, ..identity(0x4000) };
            let sender = SampledValueStream { identity: untagged, ..sampled_values() };
            let Connected { publisher, subscriber } = sender.connect(sites)?;
            let tagged = sampled_values().connect(sites)?;
            let mut unused = self.0.lock().unwrap();
            *unused = Some(Connected { publisher: tagged.publisher, subscriber });
            Ok(Connected { publisher, subscriber: tagged.subscriber })
        }
    }
    let Some(_turn) = turn(&[]) else { return };
    let plan = gridhaul_measure::transfer::Plan {
        schedule: Schedule::new(1_000.0, 20),
        horizon: Duration::from_millis(100),
        ..plan(1_000.0, 20)
    };
    let (outcome, _) = run(&plan, &Mixed(Mutex::new(None)), &Sites::loopback());
    assert_eq!(outcome.summary.counts.lost, 20, "{:?}", outcome.summary.counts);
    assert_eq!(outcome.arrivals.unidentified, 1_020, "{:?}", outcome.arrivals);
}
