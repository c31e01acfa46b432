//! Invariants of all links under random schedules.

use gridhaul_scenario::scenario::{
    Aqm, Codel, FqCodel, GilbertElliott, Jitter, JitterShape, LoadLatency, Loss, Noise,
    NoiseTiming, Outage, OutageMode, Pie, Radio, RadioStandard, RateChange, RateSchedule, Red,
    Reorder, Shadowing,
};
use gridhaul_scenario::units::{Bytes, Decibel};
use proptest::prelude::*;

use super::super::{DropReason, TransitOutcome};
use super::scheduler::schedulers;
use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// After this many microseconds, offer a packet of this many bytes.
    Offer(u64, u32),
    /// Poll the packets that have departed.
    Poll,
    /// Use the paired direction.
    Paired,
}

/// All queue disciplines, with parameters for transmission times of some milliseconds.
fn aqm() -> impl Strategy<Value = Option<Aqm>> {
    let times = || (1_u64..3_000, 1_u64..20_000);
    let micros = Duration::from_micros;
    let codel = times().prop_map(move |(target, more)| Codel {
        target: micros(target),
        interval: micros(target + more),
        ecn: more % 2 == 0,
    });
    let fq_codel = (codel.clone(), 1_u64..3_000, 1_u32..5).prop_map(|(codel, quantum, flows)| {
        let Codel { target, interval, ecn } = codel;
        FqCodel { target, interval, quantum: Bytes::new(quantum), flows, ecn }
    });
    let red = (0_u32..5, 1_u32..10, 0.01..=1.0, 0.0..=1.0, any::<bool>()).prop_map(
        |(min, more, weight, max_probability, gentle)| Red {
            min: QueueLimit::Packets(min),
            max: QueueLimit::Packets(min + more),
            weight,
            max_probability: p(max_probability),
            gentle,
            ecn: gentle,
            ..Red::default()
        },
    );
    let pie = (1_u64..3_000, 0_u64..5_000, 0.0..1e3, 0.0..1e3).prop_map(
        move |(target, burst, alpha, beta)| Pie {
            target: micros(target),
            update: micros(1_000),
            burst: micros(burst),
            alpha,
            beta,
            ecn: burst % 2 == 0,
        },
    );
    prop_oneof![
        Just(None),
        codel.prop_map(Aqm::Codel).prop_map(Some),
        fq_codel.prop_map(Aqm::FqCodel).prop_map(Some),
        red.prop_map(Aqm::Red).prop_map(Some),
        pie.prop_map(Aqm::Pie).prop_map(Some),
    ]
}

fn directions() -> impl Strategy<Value = Direction> {
    let managed =
        (drop_tail_directions(), aqm()).prop_map(|(direction, aqm)| Direction { aqm, ..direction });
    let scheduled = (drop_tail_directions(), schedulers())
        .prop_map(|(direction, scheduler)| Direction { scheduler: Some(scheduler), ..direction });
    let of_radio = (drop_tail_directions(), aqm(), radio())
        .prop_map(|(direction, aqm, radio)| Direction { aqm, radio: Some(radio), ..direction });
    prop_oneof![3 => managed, 1 => scheduled, 1 => of_radio]
}

fn radio() -> impl Strategy<Value = Radio> {
    let micros = |range: std::ops::Range<u64>| range.prop_map(Duration::from_micros);
    let standard = prop_oneof![Just(RadioStandard::Lte), Just(RadioStandard::Nr)];
    let request = prop::option::of((micros(1..20_000), micros(0..10_000)));
    (standard, micros(50..3_000), (0.0..=1.0_f64).prop_map(p), request).prop_map(
        |(standard, slot, error, request)| {
            let (request_every, grant_delay) = request.unzip();
            let round_trip = Some(slot + slot);
            let (slot, block_error) = (Some(slot), Some(error));
            let (repetition_error, transmissions) = (None, None);
            Radio {
                standard,
                slot,
                block_error,
                repetition_error,
                round_trip,
                transmissions,
                request_every,
                grant_delay,
            }
        },
    )
}

fn drop_tail_directions() -> impl Strategy<Value = Direction> {
    let queue = prop_oneof![
        (0_u32..20).prop_map(QueueLimit::Packets),
        (0_u64..20_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
        Just(QueueLimit::Unlimited),
    ];
    let probability = || (0.0..=1.0_f64).prop_map(p);
    let micros = |max: u64| (0..max).prop_map(Duration::from_micros);
    let shape = prop_oneof![
        Just(JitterShape::Uniform),
        Just(JitterShape::HalfNormal),
        Just(JitterShape::Exponential)
    ];
    let jitter = (micros(3_000), shape).prop_map(|(size, shape)| Jitter { size, shape });
    let reorder = (probability(), micros(5_000))
        .prop_map(|(probability, delay)| Reorder { probability, delay });
    let mode = prop_oneof![Just(OutageMode::Drop), Just(OutageMode::Hold)];
    let outage = (micros(20_000), micros(5_000), prop::option::of(micros(30_000)), mode)
        .prop_map(|(start, length, every, mode)| Outage { start, length, every, mode });
    let shadowing =
        (-10_000..10_000, micros(5_000), 1_u32..4).prop_map(|(margin, coherence, spans)| {
            let [margin, deviation] = [margin, 4_000].map(Decibel::from_thousandths);
            Shadowing { margin, deviation, coherence: Some(coherence), spans }
        });
    let timing = prop_oneof![Just(NoiseTiming::Random), Just(NoiseTiming::Periodic)];
    let noise = (1_u64..2_000, 10_u64..10_000, probability(), timing).prop_map(
        |(length, gap, loss, timing)| {
            let [length, gap] = [length, gap].map(Duration::from_micros);
            Noise { length, gap, loss, timing }
        },
    );
    let plain = (rate(), rate_changes(), micros(5_000), queue).prop_map(
        |(rate, rate_change, delay, queue)| Direction {
            queue,
            rate_change,
            ..Direction::new(rate, delay)
        },
    );
    let option = |strategy| prop::option::of(strategy);
    let impairments = (
        prop::option::of(loss()),
        prop::option::of(jitter),
        prop::option::of(reorder),
        option(probability().boxed()),
        option(probability().boxed()),
        prop::collection::vec(outage, 0..3),
        prop::option::of(Just(load_latency())),
        prop::option::of(shadowing),
        prop::collection::vec(noise, 0..3),
    );
    (plain, impairments).prop_map(
        |(
            plain,
            (loss, jitter, reorder, duplicate, corrupt, outage, load_latency, shadowing, noise),
        )| Direction {
            shadowing,
            noise,
            loss,
            jitter,
            reorder,
            duplicate,
            corrupt,
            outage,
            load_latency,
            ..plain
        },
    )
}

fn rate() -> impl Strategy<Value = BitRate> {
    (100_000_u64..100_000_000).prop_map(BitRate::from_bits_per_sec)
}

/// Half of the directions have a constant rate.
fn rate_changes() -> impl Strategy<Value = Vec<RateChange>> {
    let micros = |range: std::ops::Range<u64>| range.prop_map(Duration::from_micros);
    let every = prop::option::of(micros(1_000..30_000));
    let change = (micros(0..20_000), rate(), every).prop_map(|(at, rate, every)| RateChange {
        at,
        rate,
        every,
    });
    prop_oneof![Just(Vec::new()), prop::collection::vec(change, 0..4)]
}

fn loss() -> impl Strategy<Value = Loss> {
    let probability = || (0.0..=1.0_f64).prop_map(p);
    prop_oneof![
        probability().prop_map(Loss::Bernoulli),
        (probability(), probability(), probability(), probability()).prop_map(
            |(good_to_bad, bad_to_good, loss_good, loss_bad)| {
                Loss::GilbertElliott(GilbertElliott {
                    mean_good: None,
                    mean_bad: None,
                    good_to_bad: Some(good_to_bad),
                    bad_to_good: Some(bad_to_good),
                    loss_good,
                    loss_bad,
                    delay_bad: Duration::ZERO,
                })
            }
        ),
        (1_u64..1 << 32, 1_u64..1 << 32, probability(), probability(), 0_u64..5_000).prop_map(
            |(good_ns, bad_ns, loss_good, loss_bad, delay_us)| {
                Loss::GilbertElliott(GilbertElliott {
                    mean_good: Some(Duration::from_nanos(good_ns)),
                    mean_bad: Some(Duration::from_nanos(bad_ns)),
                    good_to_bad: None,
                    bad_to_good: None,
                    loss_good,
                    loss_bad,
                    delay_bad: Duration::from_micros(delay_us),
                })
            }
        ),
        prop::collection::vec(1_u64..200, 0..30).prop_map(Loss::Packets),
    ]
}

fn load_latency() -> LoadLatency {
    LoadLatency {
        critical: BitRate::from_bits_per_sec(1_000_000),
        idle: Duration::from_micros(900),
        stationary: Duration::from_micros(2_000),
        drift_max: Duration::from_micros(2_400),
        drift_time: Duration::from_micros(3_000),
        jump: Duration::from_micros(4_000),
        paired: Duration::from_micros(1_000),
        oscillation: Duration::from_micros(200),
        period: Duration::from_micros(2_000),
        memory: Duration::from_micros(1_000),
        paired_with: None,
    }
}

fn schedules() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 0_u64..200, 0_u64..5_000];
    let step = prop_oneof![
        8 => (gap, 1_u32..1_600).prop_map(|(gap, bytes)| Step::Offer(gap, bytes)),
        2 => Just(Step::Poll),
        1 => Just(Step::Paired),
    ];
    prop::collection::vec(step, 0..200)
}

/// Counts departing packets, and checks each transit.
#[derive(Default)]
struct TransitChecker {
    accepted: usize,
    returned: usize,
    copies: u64,
    last: Instant,
    transits: Vec<PacketTransit<u32>>,
}

impl TransitChecker {
    fn take(&mut self, link: &mut LinkDirection<u32>, now: Instant, direction: &Direction) {
        while let Some(transit) = link.poll_output(now) {
            self.returned += 1;
            self.copies += u64::from(transit.outcome.is_duplicate());
            assert!(self.last <= transit.left && transit.left <= now, "order of departure");
            self.last = transit.left;
            self.transits.push(transit);
            if is_dropped(&transit) {
                let is_managed = direction.aqm.is_some() || direction.scheduler.is_some();
                assert!(is_managed, "drop-tail drops nothing that it has taken");
                assert_eq!((transit.sent, transit.left), (transit.started, transit.started));
                assert!(transit.offered <= transit.left);
                continue;
            }
            assert!(transit.offered <= transit.started && transit.started <= transit.sent);
            assert!(transit.left >= transit.sent + direction.delay, "faster than the delay");
            if transit.sent == Instant::NEVER {
                // An outage without end delays the packet for ever.
                continue;
            }
            let bits = f64::from(transit.bytes) * 8.0;
            let rate_max = RateSchedule::of(direction).rate_max().as_bits_per_sec();
            let needed = bits / rate_max as f64 * 1e9;
            assert!(transit.sent.since(transit.started).as_nanos() as f64 > needed - 1.001);
        }
        assert!(link.next_deadline() > now || link.next_deadline() == Instant::NEVER);
        assert_eq!(self.accepted as u64 + link.copies(), (self.returned + link.inside()) as u64);
    }
}

/// Whether the queue dropped the packet, so that it was not transmitted.
fn is_dropped(transit: &PacketTransit<u32>) -> bool {
    matches!(transit.outcome, TransitOutcome::Lost(reason) if reason.is_by_queue())
}

fn check_limit(link: &mut LinkDirection<u32>, now: Instant, limit: QueueLimit) {
    match limit {
        QueueLimit::Packets(packets) => assert!(link.queue_packets(now) <= packets),
        QueueLimit::Bytes(bytes) => assert!(link.queue_bytes(now) <= bytes.get()),
        QueueLimit::Unlimited => {}
    }
}

proptest! {
    #[test]
    fn packets_are_conserved(direction in directions(), schedule in schedules()) {
        let mut link = link(&direction);
        let mut checker = TransitChecker::default();
        let (mut now, mut offered, mut refused) = (Instant::ZERO, 0_u32, 0_usize);
        for step in schedule {
            match step {
                Step::Offer(gap, bytes) => {
                    now += Duration::from_micros(gap);
                    match link.handle_packet(now, bytes, offered) {
                        Ok(()) => checker.accepted += 1,
                        Err(DropReason::QueueFull | DropReason::Aqm) => refused += 1,
                        Err(reason) => unreachable!("the queue does not lose by {reason:?}"),
                    }
                    offered += 1;
                    prop_assert_eq!(link.queued_at_last(), link.queue_packets(now));
                    if direction.scheduler.is_none() {
                        check_limit(&mut link, now, direction.queue);
                    }
                }
                Step::Poll => checker.take(&mut link, now, &direction),
                Step::Paired => link.note_paired_use(now),
            }
        }
        checker.take(&mut link, Instant::NEVER, &direction);
        prop_assert_eq!(link.inside(), 0);
        prop_assert_eq!(offered as usize, checker.accepted + refused);
        prop_assert_eq!(checker.copies, link.copies());
        let sent = |transit: &&PacketTransit<u32>| !transit.outcome.is_duplicate()
            && !is_dropped(transit);
        let mut originals: Vec<_> = checker.transits.iter().filter(sent).collect();
        let in_turn = direction.scheduler.is_some()
            || matches!(direction.aqm, Some(Aqm::FqCodel(_)));
        if direction.reorder.is_none() {
            prop_assert!(originals.is_sorted_by_key(|transit| transit.sent), "overtaken");
        }
        // An outage without end holds the packet in transmission and those behind it: none is
        // ever sent, but that one has started.
        originals.sort_by_key(|transit| (transit.sent, transit.started, transit.payload));
        for flow in 0..3 {
            // Flow queues change the order of flows, but not the order within a flow.
            let mut of_flow =
                originals.iter().filter(|transit| !in_turn || transit.payload.flow() == flow);
            prop_assert!(of_flow.clone().is_sorted_by_key(|transit| transit.payload), "overtaken");
            prop_assert!(of_flow.all(|transit| transit.started >= transit.offered));
        }
        // Only one packet is in transmission at a time.
        prop_assert!(originals.windows(2).all(|pair| pair[0].sent <= pair[1].started));
    }

    #[test]
    fn the_same_seed_gives_the_same_transits(direction in directions(), schedule in schedules()) {
        let run = || {
            let (mut link, mut now) = (link(&direction), Instant::ZERO);
            for step in &schedule {
                if let Step::Offer(gap, bytes) = step {
                    now += Duration::from_micros(*gap);
                    let _ = link.handle_packet(now, *bytes, 0);
                }
            }
            std::iter::from_fn(move || link.poll_output(Instant::NEVER)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn impairments_are_independent(schedule in schedules()) {
        let plain = Direction {
            loss: Some(Loss::Bernoulli(p(0.3))),
            queue: QueueLimit::Unlimited,
            ..one_byte_a_microsecond(100, QueueLimit::Unlimited)
        };
        let jittered = Direction {
            jitter: Some(Jitter { size: Duration::from_micros(50), shape: JitterShape::Uniform }),
            corrupt: Some(p(0.5)),
            ..plain.clone()
        };
        let lost = |direction: &Direction| {
            let (mut link, mut now) = (link(direction), Instant::ZERO);
            for (number, step) in (0..).zip(&schedule) {
                if let Step::Offer(gap, bytes) = step {
                    now += Duration::from_micros(*gap);
                    link.handle_packet(now, *bytes, number).unwrap();
                }
            }
            let transits = std::iter::from_fn(move || link.poll_output(Instant::NEVER));
            transits
                .filter(|transit| matches!(transit.outcome, TransitOutcome::Lost(_)))
                .map(|transit| transit.payload)
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(lost(&plain), lost(&jittered));
    }
}
