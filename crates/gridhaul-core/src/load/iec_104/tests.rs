use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn keys(every: u64, [k, w]: [u16; 2]) -> scenario::Iec104 {
    scenario::Iec104 {
        controlled: FlowEnd::From,
        values: 4,
        every: Duration::from_millis(every),
        synchronised: true,
        k,
        w,
        t1: None,
        t2: Duration::from_secs(10),
        t3: Duration::from_secs(20),
    }
}

fn stations(keys: &scenario::Iec104) -> Iec104 {
    Iec104::new(keys, at(0), RandomStream::named(1, 0, "station", 0, "load"))
}

/// Stations with t1 = 15 s on successive connections, which the controlling one opens.
fn sessions(every: u64) -> Iec104 {
    let t1 = Some(Duration::from_secs(15));
    stations(&scenario::Iec104 { controlled: FlowEnd::To, t1, ..keys(every, [12, 8]) })
}

fn frames(stations: &mut Iec104, now: u64) -> Vec<(FlowEnd, Iec104Frame)> {
    while stations.poll_ready(at(now)).is_some() {}
    std::iter::from_fn(|| stations.poll_frame(at(now))).collect()
}

fn values(millis: u64) -> (FlowEnd, Iec104Frame) {
    (FlowEnd::From, Iec104Frame::Values(at(millis)))
}

/// The same of a controlled station at the `to` end.
fn answered(millis: u64) -> (FlowEnd, Iec104Frame) {
    (FlowEnd::To, Iec104Frame::Values(at(millis)))
}

fn events(stations: &mut Iec104) -> Vec<MessageEvent> {
    std::iter::from_fn(|| stations.poll_event()).map(|(_, event)| event).collect()
}

/// The exchange of STARTDT on a new connection at a time. Returns the frames after it.
fn start(stations: &mut Iec104, connection: u64, now: u64) -> Vec<(FlowEnd, Iec104Frame)> {
    assert!(stations.handle_connection(at(now), Some(connection)));
    assert_eq!(frames(stations, now), [(FlowEnd::From, Iec104Frame::Start)]);
    stations.handle_frame(at(now), FlowEnd::To, Iec104Frame::Start);
    let mut frames = frames(stations, now);
    assert_eq!(frames.remove(0), (FlowEnd::To, Iec104Frame::StartConfirmation));
    stations.handle_frame(at(now), FlowEnd::From, Iec104Frame::StartConfirmation);
    frames
}

#[test]
fn k_frames_are_in_transit_until_w_are_acknowledged() {
    let mut stations = stations(&keys(100, [3, 2]));
    assert_eq!(frames(&mut stations, 400), [values(0), values(100), values(200)]);
    assert_eq!(stations.undelivered().count(), 5);
    for (millis, frame) in [(500, values(0).1), (510, values(100).1)] {
        assert_eq!(stations.next_deadline(), at(500));
        assert!(stations.handle_frame(at(millis), FlowEnd::To, frame).is_some());
    }
    let acknowledgement = Iec104Frame::Acknowledgement(2);
    assert_eq!(
        std::iter::from_fn(|| stations.poll_frame(at(510))).collect::<Vec<_>>(),
        [(FlowEnd::To, acknowledgement)]
    );
    assert_eq!(stations.undelivered().collect::<Vec<_>>(), [at(200), at(300), at(400)]);
    assert_eq!(stations.handle_frame(at(520), FlowEnd::From, acknowledgement), None);
    assert_eq!(stations.next_deadline(), at(500), "values are ready");
    assert_eq!(frames(&mut stations, 520), [values(300), values(400)]);
    assert_eq!(stations.size(values(0).1), 6 + 6 + 4 * 15);
    // Nothing is left for timer t2.
    assert!(frames(&mut stations, 10_600).iter().all(|(end, _)| *end == FlowEnd::From));
}

#[test]
fn timers_acknowledge_single_frames_and_test_idle_connections() {
    let mut stations = stations(&keys(60_000, [12, 8]));
    assert_eq!(frames(&mut stations, 0), [values(0)]);
    stations.handle_frame(at(200), FlowEnd::To, values(0).1);
    assert_eq!(stations.next_deadline(), at(10_200));
    let acknowledgement = Iec104Frame::Acknowledgement(1);
    assert_eq!(frames(&mut stations, 10_200), [(FlowEnd::To, acknowledgement)]);
    stations.handle_frame(at(10_400), FlowEnd::From, acknowledgement);
    // The controlling station has received nothing since 200 ms.
    assert_eq!(stations.next_deadline(), at(20_200));
    assert_eq!(frames(&mut stations, 20_200), [(FlowEnd::To, Iec104Frame::Test)]);
    assert_eq!(stations.next_deadline(), at(30_400), "the test has no confirmation");
    stations.handle_frame(at(20_400), FlowEnd::From, Iec104Frame::Test);
    let confirmation = (FlowEnd::From, Iec104Frame::TestConfirmation);
    assert_eq!(stations.next_deadline(), at(20_400));
    assert_eq!(frames(&mut stations, 20_400), [confirmation]);
    stations.handle_frame(at(20_600), FlowEnd::To, confirmation.1);
    assert_eq!(stations.next_deadline(), at(40_400));
    let tests = [FlowEnd::From, FlowEnd::To].map(|end| (end, Iec104Frame::Test));
    assert_eq!(frames(&mut stations, 40_600), tests, "both stations have received nothing");
    assert_eq!((stations.poll_abort(), stations.delivered()), (None, None));
}

#[test]
fn values_wait_for_a_connection_and_for_the_start_of_data_transfer() {
    let mut stations = sessions(1_000);
    assert_eq!(frames(&mut stations, 0), []);
    assert_eq!(stations.next_deadline(), at(1_000), "no timer without a connection");
    assert_eq!(start(&mut stations, 1, 500), [answered(0)]);
    assert_eq!(frames(&mut stations, 1_000), [answered(1_000)]);
}

/// Values of 0 s, 1 s and 2 s, of which the first two arrive, and nothing later.
fn interrupted() -> Iec104 {
    let mut stations = sessions(1_000);
    assert_eq!(start(&mut stations, 1, 0), [answered(0)]);
    for millis in [1_000, 2_000] {
        assert_eq!(frames(&mut stations, millis), [answered(millis)]);
    }
    for millis in [0, 1_000] {
        let arrived = stations.handle_frame(at(2_100), FlowEnd::From, answered(millis).1);
        assert_eq!(arrived, Some(at(millis)));
    }
    stations
}

#[test]
fn a_controlled_station_closes_the_connection_after_t1() {
    let mut stations = interrupted();
    // The acknowledgement after t2 is lost.
    let acknowledgement = (FlowEnd::From, Iec104Frame::Acknowledgement(2));
    assert_eq!(frames(&mut stations, 12_100).last(), Some(&acknowledgement));
    assert_eq!(frames(&mut stations, 14_999), [], "k frames have no acknowledgement");
    assert_eq!((frames(&mut stations, 15_000), stations.poll_abort()), (vec![], Some(FlowEnd::To)));
    // The controlling station tests the connection 20 s after the last frame, and closes it then.
    assert_eq!(frames(&mut stations, 22_099), []);
    assert_eq!(frames(&mut stations, 22_100), [(FlowEnd::From, Iec104Frame::Test)]);
    assert_eq!((frames(&mut stations, 37_099), stations.poll_abort()), (vec![], None));
    assert_eq!(
        (frames(&mut stations, 37_100), stations.poll_abort()),
        (vec![], Some(FlowEnd::From))
    );
    assert!(!stations.handle_connection(at(37_100), Some(1)), "it has left this connection");
    assert_eq!(stations.next_deadline(), at(38_000), "the next values");
}

#[test]
fn the_next_connection_carries_frames_without_an_acknowledgement() {
    let mut stations = interrupted();
    events(&mut stations);
    assert!(stations.handle_connection(at(2_500), None));
    assert_eq!(frames(&mut stations, 3_000), []);
    assert_eq!(stations.undelivered().collect::<Vec<_>>(), [at(2_000), at(3_000)]);
    let again = start(&mut stations, 2, 4_000);
    assert_eq!(again, [0, 1_000, 2_000, 3_000, 4_000].map(answered));
    let arrived =
        again.iter().map(|(_, frame)| stations.handle_frame(at(5_000), FlowEnd::From, *frame));
    let new = [2_000, 3_000, 4_000].map(|millis| Some(at(millis)));
    assert_eq!(arrived.collect::<Vec<_>>(), [[None; 2].as_slice(), &new].concat());
    assert_eq!(stations.delivered(), Some(5 * 72));
    let copies = [MessageEvent::Duplicate; 2];
    assert_eq!(
        events(&mut stations),
        [[MessageEvent::Retransmitted; 3].as_slice(), &copies].concat()
    );
    // Five frames are acknowledged after t2, counted from the first transmission.
    let acknowledgement = Iec104Frame::Acknowledgement(5);
    assert_eq!(frames(&mut stations, 15_000).last(), Some(&(FlowEnd::From, acknowledgement)));
    stations.handle_frame(at(15_100), FlowEnd::To, acknowledgement);
    let took = [15_100, 14_100, 13_100, 11_100, 11_100].map(Duration::from_millis);
    assert_eq!(events(&mut stations), took.map(MessageEvent::Acknowledged));
}

#[test]
fn start_of_data_transfer_without_confirmation_ends_after_t1() {
    let mut stations = sessions(60_000);
    assert!(stations.handle_connection(at(1_000), Some(1)));
    assert_eq!(frames(&mut stations, 1_000), [(FlowEnd::From, Iec104Frame::Start)]);
    assert_eq!(stations.next_deadline(), at(16_000));
    assert_eq!(
        (frames(&mut stations, 16_000), stations.poll_abort()),
        (vec![], Some(FlowEnd::From))
    );
}

/// The controlled station has received nothing for 20 s, and its values have no acknowledgement.
#[test]
fn the_oldest_frame_without_an_answer_ends_the_connection() {
    let mut stations = sessions(60_000);
    let [from, to] = [FlowEnd::From, FlowEnd::To];
    let acknowledgement = Iec104Frame::Acknowledgement(1);
    assert_eq!(start(&mut stations, 1, 34_000), [answered(0)]);
    stations.handle_frame(at(34_100), from, answered(0).1);
    assert_eq!(frames(&mut stations, 44_100), [(from, acknowledgement)]);
    stations.handle_frame(at(44_200), to, acknowledgement);
    assert_eq!(frames(&mut stations, 54_100), [(from, Iec104Frame::Test)]);
    stations.handle_frame(at(54_200), to, Iec104Frame::Test);
    assert_eq!(frames(&mut stations, 54_200), [(to, Iec104Frame::TestConfirmation)]);
    stations.handle_frame(at(54_300), from, Iec104Frame::TestConfirmation);
    assert_eq!(frames(&mut stations, 60_000), [answered(60_000)]);
    stations.handle_frame(at(60_100), from, answered(60_000).1);
    // Neither this acknowledgement nor the test frame after it arrives.
    assert_eq!(frames(&mut stations, 70_100), [(from, acknowledgement)]);
    assert_eq!(frames(&mut stations, 74_200), [(to, Iec104Frame::Test)]);
    assert_eq!((frames(&mut stations, 74_999), stations.poll_abort()), (vec![], None));
    assert_eq!((frames(&mut stations, 75_000), stations.poll_abort()), (vec![], Some(to)));
    // A station that has closed the connection ignores late frames.
    events(&mut stations);
    stations.handle_frame(at(75_100), to, acknowledgement);
    assert_eq!(events(&mut stations), []);
}

#[test]
fn acknowledgements_end_with_their_connection() {
    // The timer t2 of two frames.
    let mut stations = interrupted();
    assert!(stations.handle_connection(at(2_500), None));
    start(&mut stations, 2, 4_000);
    let frames_at_t2 = frames(&mut stations, 12_200);
    assert!(frames_at_t2.iter().all(|(end, _)| *end == FlowEnd::To), "{frames_at_t2:?}");
    // An acknowledgement of w frames that has not been written.
    let mut stations = sessions(100);
    start(&mut stations, 1, 0);
    frames(&mut stations, 700);
    for millis in (0..800).step_by(100) {
        stations.handle_frame(at(710), FlowEnd::From, answered(millis).1);
    }
    assert!(stations.handle_connection(at(710), None));
    assert_eq!(start(&mut stations, 2, 750), [0, 100, 200, 300, 400, 500, 600, 700].map(answered));
}
