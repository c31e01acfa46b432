//! Applications on a fake carrier whose deliveries the test controls.

use gridhaul_scenario::scenario::{self, Load, PeriodDistribution};
use gridhaul_scenario::units::{BitRate, Bytes, Duration, Probability};
use proptest::prelude::*;

use super::*;
use crate::random::RandomStream;

/// Class of messages in these tests.
type Class = u8;

/// A connection that delivers on [`FakeCarrier::deliver`] and accepts a limited number of messages.
#[derive(Default)]
struct FakeCarrier {
    /// Messages written at the `from` and at the `to` end.
    messages: [Vec<Message<Class, &'static str>>; 2],
    written: [u64; 2],
    delivered: [u64; 2],
    closed: [bool; 2],
    open: bool,
    /// Messages that [`Carrier::try_write`] accepts before it refuses.
    accepts: u32,
    refused: Vec<bool>,
    /// Times of announced messages.
    announced: Vec<Instant>,
}

impl FakeCarrier {
    fn open() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// Delivers up to this many bytes written at the other end.
    fn deliver(&mut self, end: FlowEnd, bytes: u64) {
        let delivered = &mut self.delivered[end as usize];
        *delivered = delivered.saturating_add(bytes).min(self.written[end.peer() as usize]);
    }

    fn ids(&self, end: FlowEnd) -> Vec<u64> {
        self.messages[end as usize].iter().map(|message| message.id).collect()
    }
}

impl Carrier for FakeCarrier {
    type Class = Class;
    type Payload = &'static str;

    fn write(&mut self, end: FlowEnd, message: Message<Class, &'static str>) {
        self.write_stream(end, message.bytes);
        assert_eq!(message.id, self.written[end as usize], "the identifier is the position");
        self.messages[end as usize].push(message);
    }

    fn try_write(
        &mut self,
        end: FlowEnd,
        message: Message<Class, &'static str>,
        refused: bool,
    ) -> bool {
        self.refused.push(refused);
        let accepts = self.open && self.accepts > 0;
        if accepts {
            self.accepts -= 1;
            self.write(end, message);
        }
        accepts
    }

    fn announce(&mut self, ready: Instant) {
        self.announced.push(ready);
    }

    fn write_stream(&mut self, end: FlowEnd, bytes: u64) {
        assert!(!self.closed[end as usize], "nothing may be written after close");
        let written = &mut self.written[end as usize];
        *written = written.saturating_add(bytes);
    }

    fn close(&mut self, end: FlowEnd) {
        assert!(!self.closed[end as usize], "an end is closed once");
        self.closed[end as usize] = true;
    }

    fn written(&self, end: FlowEnd) -> u64 {
        self.written[end as usize]
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        self.delivered[end as usize]
    }

    fn is_open(&self) -> bool {
        self.open
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn random(seed: u64) -> RandomStream {
    RandomStream::named(seed, 0, "flow", 0, "load")
}

fn application(load: &Load) -> Application<Class> {
    let start = at(1_000);
    Application::new(Demand::new(load, start, random(1)), start, 7)
}

/// All completely delivered messages at an end.
fn delivered_messages(
    application: &mut Application<Class>,
    now: Instant,
    (end, carrier): (FlowEnd, &mut FakeCarrier),
    in_flight: &mut InFlightMessages,
) -> Vec<Delivered> {
    std::iter::from_fn(|| application.poll_delivered(now, end, carrier, in_flight)).collect()
}

#[test]
fn applications_stay_small() {
    // There may be a million meters, each with its source of messages in place.
    assert!(size_of::<Application>() <= 72, "{}", size_of::<Application>());
    assert!(size_of::<Option<Application>>() <= 72, "{}", size_of::<Option<Application>>());
    // Parameters that the simulator does not use have size zero.
    assert_eq!(size_of::<Message>(), 24);
}

#[test]
fn bulk_writes_without_end_and_has_no_messages() {
    let (mut bulk, mut carrier) = (application(&Load::Bulk), FakeCarrier::open());
    let mut in_flight = InFlightMessages::default();
    bulk.handle_timeout(at(1_000), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, carrier.closed), ([u64::MAX, 0], [false; 2]));
    assert_eq!((bulk.next_deadline(), bulk.has_messages()), (Instant::NEVER, false));
    carrier.deliver(FlowEnd::To, 1 << 40);
    assert_eq!(
        delivered_messages(&mut bulk, at(2_000), (FlowEnd::To, &mut carrier), &mut in_flight),
        []
    );
    assert_eq!(bulk.watch(&in_flight), u64::MAX);
}

#[test]
fn a_transfer_closes_after_its_last_byte() {
    let load = Load::Transfer(scenario::Transfer { size: Bytes::new(5_000) });
    let (mut app, mut carrier) = (application(&load), FakeCarrier::open());
    let mut in_flight = InFlightMessages::default();
    app.handle_timeout(at(1_000), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, carrier.closed), ([5_000, 0], [true, false]));
    assert_eq!(app.watch(&in_flight), 5_000);
    carrier.deliver(FlowEnd::To, 4_999);
    assert_eq!(
        delivered_messages(&mut app, at(3_000), (FlowEnd::To, &mut carrier), &mut in_flight),
        []
    );
    assert!(!app.transfer().unwrap().is_complete() && !carrier.closed[1]);
    carrier.deliver(FlowEnd::To, 1);
    for now in [at(4_000), at(5_000)] {
        // At the second call the transfer is already complete.
        assert_eq!(
            delivered_messages(&mut app, now, (FlowEnd::To, &mut carrier), &mut in_flight),
            []
        );
    }
    let transfer = app.transfer().unwrap();
    assert_eq!((transfer.start, transfer.completed), (at(1_000), at(4_000)));
    assert_eq!((carrier.closed, app.watch(&in_flight)), ([true; 2], u64::MAX));
}

#[test]
fn a_recorded_trace_passes_payload_on() {
    let start = at(1_000);
    let mut recorded = Application::new(Demand::Recorded, start, 7);
    let (mut carrier, mut in_flight) = (FakeCarrier::open(), InFlightMessages::default());
    recorded.handle_timeout(start, &mut carrier, &mut in_flight);
    assert_eq!(
        recorded.next_deadline(),
        Instant::NEVER,
        "the reader of the recording has the deadlines"
    );
    let arrival = Arrival { at: at(1_500), bytes: 3 };
    recorded.handle_recorded(arrival, Some("abc"), &mut carrier, &mut in_flight);
    let expected = Message { id: 3, class: 7, at: at(1_500), bytes: 3, payload: Some("abc") };
    assert_eq!(carrier.messages[0], [expected]);
    assert_eq!(recorded.undelivered(&in_flight).collect::<Vec<_>>(), [at(1_500)]);
    carrier.deliver(FlowEnd::To, 3);
    let delivered =
        delivered_messages(&mut recorded, at(2_000), (FlowEnd::To, &mut carrier), &mut in_flight);
    assert_eq!(delivered, [Delivered { id: 3, at: at(1_500) }]);
    assert_eq!(recorded.undelivered(&in_flight).count(), 0);
}

/// On periods of a second, then off periods of a second; messages of 100 B as fast as the carrier
/// accepts them.
fn greedy() -> Application<Class> {
    application(&Load::OnOff(scenario::OnOff {
        size: Bytes::new(100),
        on: Duration::from_secs(1),
        off: Duration::from_secs(1),
        rate: None,
        spread: PeriodDistribution::Fixed,
        synchronised: false,
    }))
}

/// Advances over an off period, if the greedy application starts with one.
fn advance_to_on_period(
    app: &mut Application<Class>,
    carrier: &mut FakeCarrier,
    in_flight: &mut InFlightMessages,
) -> Instant {
    let mut now = at(1_000);
    app.handle_timeout(now, carrier, in_flight);
    while !app.is_in_burst() {
        now = app.next_deadline();
        app.handle_timeout(now, carrier, in_flight);
    }
    now
}

#[test]
fn an_on_period_without_rate_writes_when_the_carrier_accepts_messages() {
    let (mut app, mut carrier, mut in_flight) =
        (greedy(), FakeCarrier::open(), InFlightMessages::default());
    let now = advance_to_on_period(&mut app, &mut carrier, &mut in_flight);
    assert!(
        carrier.ids(FlowEnd::From).is_empty(),
        "an open connection is written to by poll_write"
    );
    carrier.accepts = 2;
    let mut poll = |carrier: &mut FakeCarrier| app.poll_write(now, carrier, &mut in_flight);
    assert_eq!([(); 4].map(|()| poll(&mut carrier)), [true, true, false, false]);
    carrier.accepts = 1;
    assert!(poll(&mut carrier));
    // Each call states whether the previous message was refused.
    assert_eq!(carrier.refused, [false, false, false, true, true]);
    assert_eq!(carrier.ids(FlowEnd::From), [100, 200, 300]);
    app.advance(app.next_deadline());
    assert!(!app.is_in_burst());
    carrier.accepts = 1;
    assert!(!app.poll_write(now, &mut carrier, &mut in_flight), "off period");
}

#[test]
fn an_on_period_before_the_connection_is_established_writes_one_message() {
    let (mut app, mut carrier, mut in_flight) =
        (greedy(), FakeCarrier::default(), InFlightMessages::default());
    let now = advance_to_on_period(&mut app, &mut carrier, &mut in_flight);
    assert_eq!(carrier.ids(FlowEnd::From), [100]);
    assert_eq!(carrier.messages[0][0].at, now);
    assert!(!app.poll_write(now, &mut carrier, &mut in_flight));
}

#[test]
fn a_dialogue_alternates_and_waits() {
    let keys = scenario::RequestResponse {
        request: Bytes::new(100),
        response: Bytes::new(3_000),
        think: Duration::from_millis(5),
        pause: Duration::from_millis(50),
    };
    let mut app = application(&Load::RequestResponse(keys));
    let (mut carrier, mut in_flight) = (FakeCarrier::open(), InFlightMessages::default());
    app.handle_timeout(at(900), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, app.next_deadline()), ([0, 0], at(1_000)), "the start is later");
    assert_eq!(app.undelivered(&in_flight).count(), 0, "no request is outstanding in a pause");
    app.handle_timeout(at(1_000), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, app.next_deadline()), ([100, 0], Instant::NEVER));
    assert_eq!((app.watch(&in_flight), app.watch_response()), (100, Some(u64::MAX)));
    carrier.deliver(FlowEnd::To, 99);
    assert_eq!(
        delivered_messages(&mut app, at(1_010), (FlowEnd::To, &mut carrier), &mut in_flight),
        []
    );
    assert_eq!(app.next_deadline(), Instant::NEVER);
    carrier.deliver(FlowEnd::To, 1);
    assert_eq!(
        delivered_messages(&mut app, at(1_020), (FlowEnd::To, &mut carrier), &mut in_flight),
        []
    );
    assert_eq!(app.next_deadline(), at(1_025), "a request is reported only with its response");
    assert_eq!(app.undelivered(&in_flight).collect::<Vec<_>>(), [at(1_000)]);
    app.handle_timeout(at(1_025), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, app.watch_response()), ([100, 3_000], Some(3_000)));
    carrier.deliver(FlowEnd::From, 3_000);
    let delivered =
        delivered_messages(&mut app, at(1_040), (FlowEnd::From, &mut carrier), &mut in_flight);
    assert_eq!(delivered, [Delivered { id: 3_000, at: at(1_000) }]);
    assert_eq!(app.next_deadline(), at(1_090));
    app.handle_timeout(at(1_090), &mut carrier, &mut in_flight);
    assert_eq!(
        (carrier.ids(FlowEnd::From), carrier.ids(FlowEnd::To)),
        (vec![100, 200], vec![3_000])
    );
}

#[test]
fn the_next_step_waits_for_all_data_before() {
    let step = |writer, bytes, after| scenario::ExchangeStep {
        writer,
        size: Bytes::new(bytes),
        after: Duration::from_millis(after),
    };
    let steps = vec![step(FlowEnd::From, 20, 0), step(FlowEnd::From, 60, 0)];
    let steps = [steps, vec![step(FlowEnd::To, 200, 10)]].concat();
    let every = Some(Duration::from_millis(50));
    let keys = scenario::Exchange { steps, every, pause: Duration::ZERO };
    let mut app = application(&Load::Exchange(keys));
    let (mut carrier, mut in_flight) = (FakeCarrier::open(), InFlightMessages::default());
    app.handle_timeout(at(1_000), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, carrier.announced.clone()), ([80, 0], vec![at(1_000)]));
    assert_eq!((app.watch(&in_flight), app.watch_response()), (80, Some(u64::MAX)));
    for (bytes, deadline) in [(79, at(1_050)), (1, at(1_030))] {
        carrier.deliver(FlowEnd::To, bytes);
        let end = (FlowEnd::To, &mut carrier);
        assert_eq!(delivered_messages(&mut app, at(1_020), end, &mut in_flight), []);
        assert_eq!(app.next_deadline(), deadline);
    }
    app.handle_timeout(at(1_060), &mut carrier, &mut in_flight);
    assert_eq!(
        (carrier.written, carrier.announced.clone()),
        ([80, 200], vec![at(1_000), at(1_050)])
    );
    assert_eq!(app.undelivered(&in_flight).collect::<Vec<_>>(), [at(1_000), at(1_050)]);
    carrier.deliver(FlowEnd::From, 200);
    let end = (FlowEnd::From, &mut carrier);
    let delivered = delivered_messages(&mut app, at(1_070), end, &mut in_flight);
    assert_eq!(delivered, [Delivered { id: 200, at: at(1_000) }]);
    // The exchange that was due at 1,050 ms begins at once.
    assert_eq!(app.next_deadline(), at(1_070));
}

#[test]
fn frames_of_iec_104_are_recognised_by_their_position() {
    let keys = scenario::Iec104 {
        controlled: FlowEnd::From,
        values: 1,
        every: Duration::from_millis(100),
        synchronised: true,
        k: 2,
        w: 2,
        t1: None,
        t2: Duration::from_secs(10),
        t3: Duration::from_secs(20),
    };
    let mut app = application(&Load::Iec104(keys));
    let (mut carrier, mut in_flight) = (FakeCarrier::open(), InFlightMessages::default());
    app.handle_timeout(at(1_250), &mut carrier, &mut in_flight);
    // Three frames of 27 B are ready, and two may be sent.
    assert_eq!(carrier.announced, [at(1_000), at(1_100), at(1_200)]);
    assert_eq!((carrier.written, app.watch(&in_flight)), ([54, 0], 27));
    assert_eq!(app.undelivered(&in_flight).collect::<Vec<_>>(), carrier.announced);
    carrier.deliver(FlowEnd::To, 54);
    let end = (FlowEnd::To, &mut carrier);
    let delivered = delivered_messages(&mut app, at(1_260), end, &mut in_flight);
    let frame = |id, millis| Delivered { id, at: at(millis) };
    assert_eq!(delivered, [frame(27, 1_000), frame(54, 1_100)]);
    assert_eq!(app.next_deadline(), at(1_260));
    app.handle_timeout(at(1_260), &mut carrier, &mut in_flight);
    assert_eq!((carrier.written, app.watch_response()), ([54, 6], Some(6)));
    carrier.deliver(FlowEnd::From, 6);
    let end = (FlowEnd::From, &mut carrier);
    assert_eq!(delivered_messages(&mut app, at(1_270), end, &mut in_flight), []);
    app.handle_timeout(at(1_270), &mut carrier, &mut in_flight);
    assert_eq!(carrier.written, [81, 6]);
}

fn loads() -> impl Strategy<Value = Load> {
    let size = || (1_u64..5_000).prop_map(Bytes::new);
    let time = || (1_u64..500).prop_map(Duration::from_millis);
    let periodic = (size(), time(), time()).prop_map(|(size, every, jitter)| {
        Load::Periodic(scenario::Periodic { size, every, jitter, synchronised: false })
    });
    let poisson = (size(), time()).prop_map(|(size, every)| {
        Load::Poisson(scenario::Poisson { size, every, synchronised: false })
    });
    let rate = prop::option::of(Just(BitRate::from_bits_per_sec(200_000)));
    let on_off = (size(), time(), time(), rate).prop_map(|(size, on, off, rate)| {
        let (spread, synchronised) = (PeriodDistribution::Fixed, false);
        Load::OnOff(scenario::OnOff { size, on, off, rate, spread, synchronised })
    });
    let burst = (size(), time(), 1_u32..20, time()).prop_map(|(size, at, count, gap)| {
        let (spread, share) = (Duration::from_millis(100), Probability::ONE);
        Load::Burst(scenario::Burst { size, at, spread, count, gap, every: None, share })
    });
    let dialogue =
        (size(), size(), time(), time()).prop_map(|(request, response, think, pause)| {
            Load::RequestResponse(scenario::RequestResponse { request, response, think, pause })
        });
    prop_oneof![periodic, poisson, on_off, burst, dialogue]
}

/// Events at a carrier.
#[derive(Debug, Clone)]
enum Step {
    /// This many milliseconds pass.
    Wait(u64),
    /// This many bytes are delivered at an end.
    Deliver(FlowEnd, u64),
    /// The carrier opens and accepts this many messages.
    Take(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![Just(FlowEnd::From), Just(FlowEnd::To)];
    let step = prop_oneof![
        (0_u64..1_000).prop_map(Step::Wait),
        (end, 0_u64..10_000).prop_map(|(end, bytes)| Step::Deliver(end, bytes)),
        (0_u32..5).prop_map(Step::Take),
    ];
    prop::collection::vec(step, 0..100)
}

/// The backlog of an overloaded connection needs no memory for each message.
#[test]
fn a_long_backlog_is_generated_again() {
    let load = Load::Poisson(scenario::Poisson {
        size: Bytes::new(30),
        every: Duration::from_millis(10),
        synchronised: false,
    });
    let (mut app, mut carrier) = (application(&load), FakeCarrier::open());
    let mut in_flight = InFlightMessages::default();
    let mut found = Vec::new();
    for round in 1..=5 {
        let now = at(10_000 * round);
        app.handle_timeout(now, &mut carrier, &mut in_flight);
        assert!(in_flight.slots() < 15, "{}", in_flight.slots());
        let sent: Vec<_> = carrier.messages[0].iter().map(|message| message.at).collect();
        let open = &sent[found.len()..];
        assert_eq!(app.undelivered(&in_flight).collect::<Vec<_>>(), open);
        // Most messages of a round are delivered, and all of the last round.
        let delivered = if round == 5 { u64::MAX } else { 25_000 };
        carrier.deliver(FlowEnd::To, delivered);
        found.extend(delivered_messages(
            &mut app,
            now,
            (FlowEnd::To, &mut carrier),
            &mut in_flight,
        ));
    }
    let sent: Vec<_> = carrier.messages[0].iter().map(|message| (message.id, message.at)).collect();
    assert!(sent.len() > 4_000);
    assert_eq!(found.iter().map(|message| (message.id, message.at)).collect::<Vec<_>>(), sent);
}

proptest! {
    /// For any behaviour of the carrier: identifiers are unique, messages are delivered once and in
    /// the order in which they were written, and the ends of a dialogue alternate.
    #[test]
    fn messages_are_delivered_in_order(load in loads(), steps in steps()) {
        let (mut app, mut carrier) = (application(&load), FakeCarrier::default());
        let mut in_flight = InFlightMessages::default();
        let is_dialogue = matches!(load, Load::RequestResponse(_));
        let (mut now, mut delivered) = (at(500), [Vec::new(), Vec::new()]);
        app.handle_timeout(now, &mut carrier, &mut in_flight);
        for step in steps {
            match step {
                Step::Wait(millis) => {
                    let until = now + Duration::from_millis(millis);
                    while app.next_deadline() <= until {
                        now = now.max(app.next_deadline());
                        app.handle_timeout(now, &mut carrier, &mut in_flight);
                        prop_assert!(app.next_deadline() > now, "the deadline must advance");
                    }
                    now = until;
                }
                Step::Deliver(end, bytes) => {
                    carrier.deliver(end, bytes);
                    let watch = match end {
                        FlowEnd::To => app.watch(&in_flight),
                        FlowEnd::From => app.watch_response().unwrap_or(u64::MAX),
                    };
                    let new = delivered_messages(&mut app, now, (end, &mut carrier),
                        &mut in_flight);
                    prop_assert!(new.is_empty() || carrier.delivered(end) >= watch);
                    delivered[end.peer() as usize].extend(new);
                }
                Step::Take(messages) => {
                    (carrier.open, carrier.accepts) = (true, messages);
                    while app.poll_write(now, &mut carrier, &mut in_flight) {}
                }
            }
            let sent = carrier.messages.each_ref().map(Vec::len);
            if is_dialogue {
                // A response follows its request, and a request follows the previous response.
                prop_assert!(sent[0] == sent[1] || sent[0] == sent[1] + 1);
                prop_assert!(delivered[1].len() <= sent[1]);
            } else {
                let sent = carrier.messages[0].iter().map(|message| message.at);
                let open: Vec<_> = sent.skip(delivered[0].len()).collect();
                prop_assert_eq!(app.undelivered(&in_flight).collect::<Vec<_>>(), open);
            }
        }
        for end in [FlowEnd::From, FlowEnd::To] {
            let (sent, delivered) = (&carrier.messages[end as usize], &delivered[end as usize]);
            prop_assert!(sent.is_sorted_by(|a, b| a.id < b.id && a.at <= b.at), "unique, in order");
            prop_assert!(sent.iter().all(|message| message.class == 7));
            let reached = carrier.delivered(end.peer());
            // The requests of a dialogue are not reported as messages, only their responses.
            let is_counted = !is_dialogue || end == FlowEnd::To;
            let expected = sent.iter().filter(|message| is_counted && message.id <= reached);
            let expected: Vec<_> = expected.map(|message| (message.id, message.at)).collect();
            let found = delivered.iter().zip(&expected).map(|(message, sent)| {
                // The delay of a response begins with its request.
                (message.id, if is_dialogue { sent.1 } else { message.at })
            });
            prop_assert_eq!(delivered.len(), expected.len());
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
