//! Random scenarios that are valid.

mod publications;
mod radio_links;

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::{
    AcceptLimits, Acknowledgement, AlterAttack, AlteredChecksum, Application, ApplicationProfile,
    Aqm, Attack, AttackAction, Burst, Coap, Codel, Compression, CongestionControlAlgorithm,
    ConnectionPolicy, Crash, CsmaCa, CsmaStandard, DecidingMetric, DelayAttack, Direction, Dlms,
    DropAttack, Dscp, Dtls, DtlsSession, DtlsVersion, Exchange, ExchangeStep, FloodAttack, Flow,
    FlowEnd, FqCodel, GilbertElliott, Iec104, IpVersion, Jitter, JitterShape, KeepAlive, Link,
    Load, Loss, Medium, Modbus, NarrowInterval, Nat, NatAnswer, Node, Noise, NoiseTiming, OnOff,
    Outage, OutageMode, PacketTooBig, PacketsWhileDown, PeriodDistribution, Periodic, Pie, Poisson,
    PowerLine, PowerLineClass, Profile, Proxy, ProxyMode, RateChange, Reconnect, Record, Red,
    Reorder, Replications, RequestResponse, RetransmitOn, RouteChange, Scheduler, SchedulerClass,
    Shadowing, Stack, Sweep, Tdma, Tls, TlsResumption, TlsVersion, Transfer, Transport, ValueRange,
    Values,
};
use gridhaul_scenario::units::{
    BitRate, Bytes, Decibel, Distance, Duration, Probability, QueueLimit, WindowSize,
};
use indexmap::IndexMap;
use proptest::option;
use proptest::prelude::*;

use publications::publications;
use radio_links::{handover, measured, reception};

fn time(minimum: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![minimum..1 << 50, (minimum.max(1)..5_000).prop_map(|ms| ms * 1_000_000)]
        .prop_map(Duration::from_nanos)
}

/// A size that fits into one datagram, also over IPv6.
fn size() -> impl Strategy<Value = Bytes> {
    (1_u64..=1_452).prop_map(Bytes::new)
}

fn rate() -> impl Strategy<Value = BitRate> {
    (1_u64..1 << 40).prop_map(BitRate::from_bits_per_sec)
}

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_map(|ratio| Probability::new(ratio).unwrap())
}

fn loss() -> BoxedStrategy<Loss> {
    let channel = ((0.01..=1.0), probability(), probability(), probability());
    let mean = || (1_u64..1 << 40).prop_map(|nanos| Some(Duration::from_nanos(nanos)));
    let in_time = (mean(), mean(), probability(), probability(), time(0));
    prop_oneof![
        probability().prop_map(Loss::Bernoulli),
        prop::collection::vec(1_u64.., 0..4).prop_map(Loss::Packets),
        channel.prop_map(|(good_to_bad, bad_to_good, loss_good, loss_bad)| {
            let good_to_bad = Some(Probability::new(good_to_bad).unwrap());
            let (mean_good, mean_bad, bad_to_good) = (None, None, Some(bad_to_good));
            Loss::GilbertElliott(GilbertElliott {
                mean_good,
                mean_bad,
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
                delay_bad: Duration::ZERO,
            })
        }),
        in_time.prop_map(|(mean_good, mean_bad, loss_good, loss_bad, delay_bad)| {
            let (good_to_bad, bad_to_good) = (None, None);
            Loss::GilbertElliott(GilbertElliott {
                mean_good,
                mean_bad,
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
                delay_bad,
            })
        }),
    ]
    .boxed()
}

fn aqm() -> impl Strategy<Value = Aqm> {
    let times = || (0_u64..1 << 30, 1_u64..1 << 30);
    let nanos = Duration::from_nanos;
    prop_oneof![
        (0_u32..100, 1_u32..100, 0.001..=1.0, probability(), any::<bool>()).prop_map(
            |(min, more, weight, max_probability, gentle)| {
                let (min, max) = (QueueLimit::Packets(min), QueueLimit::Packets(min + more));
                let ecn = !gentle;
                Aqm::Red(Red { min, max, weight, max_probability, gentle, ecn, ..Red::default() })
            }
        ),
        times().prop_map(move |(target, more)| {
            let (target, interval) = (nanos(target), nanos(target + more));
            Aqm::Codel(Codel { target, interval, ecn: more % 2 == 0 })
        }),
        (time(0), (1_u64..5_000).prop_map(Duration::from_millis), 0.0..10.0, 0.0..10.0).prop_map(
            |(target, update, alpha, beta)| {
                Aqm::Pie(Pie { target, update, alpha, beta, ..Pie::default() })
            }
        ),
        (times(), size(), 1_u32..2_000).prop_map(move |((target, more), quantum, flows)| {
            let (target, interval) = (nanos(target), nanos(target + more));
            Aqm::FqCodel(FqCodel { target, interval, quantum, flows, ecn: more % 2 == 0 })
        }),
    ]
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    let class = (
        prop::collection::vec(0_u8..64, 1..3),
        any::<bool>(),
        option::of(1_u32..=1_000),
        option::of((rate(), size())),
        option::of((1_u32..2_000).prop_map(QueueLimit::Packets)),
        any::<bool>(),
    );
    let classes = prop::collection::vec(class, 0..4);
    (1_u64..=64_000_000, classes).prop_map(|(quantum, classes)| {
        let mut rank = 0;
        let mut known = Vec::new();
        let classes = classes.into_iter().map(|(dscp, strict, weight, bucket, queue, codel)| {
            rank += 1;
            let mut dscp: Vec<_> = dscp.into_iter().filter_map(Dscp::new).collect();
            dscp.retain(|dscp| {
                let is_new = !known.contains(dscp);
                known.push(*dscp);
                is_new
            });
            let (rate, burst) = bucket.unzip();
            let aqm = codel.then(|| Aqm::Codel(Codel::default()));
            let priority = strict.then_some(rank);
            let weight = weight.filter(|_| !strict);
            let class = SchedulerClass {
                dscp,
                priority,
                weight,
                rate,
                burst,
                queue,
                aqm,
                flows: Vec::new(),
            };
            (format!("class-{rank}"), class)
        });
        let mut class: IndexMap<_, _> =
            classes.filter(|(_, class)| !class.takes_other_packets()).collect();
        class.insert("other".into(), SchedulerClass::default());
        Scheduler { quantum: Bytes::new(quantum), class }
    })
}

fn decibel(minimum: i32) -> impl Strategy<Value = Decibel> {
    (minimum..100_000).prop_map(Decibel::from_thousandths)
}

fn shadowing() -> impl Strategy<Value = Shadowing> {
    (decibel(-100_000), decibel(0), option::of(time(1)), 1..=Shadowing::SPANS_MAX).prop_map(
        |(margin, deviation, coherence, spans)| Shadowing { margin, deviation, coherence, spans },
    )
}

fn noise() -> impl Strategy<Value = Noise> {
    let timing = prop_oneof![Just(NoiseTiming::Random), Just(NoiseTiming::Periodic)];
    (time(1), time(0), 0.001..=1.0, timing).prop_map(|(length, gap, loss, timing)| Noise {
        length,
        gap: gap + Noise::CYCLE_MIN,
        loss: Probability::new(loss).unwrap(),
        timing,
    })
}

fn power_line() -> impl Strategy<Value = PowerLine> {
    let class = prop_oneof![
        Just(PowerLineClass::Narrowband),
        Just(PowerLineClass::Broadband),
        Just(PowerLineClass::FutureBroadband)
    ];
    let distance = |metres| option::of((1_u64..metres).prop_map(Distance::from_metres));
    let level = option::of((option::of(decibel(0)), option::of(decibel(-50_000))));
    (class, distance(50_000), distance(1_000), time(0), level, any::<bool>()).prop_map(
        |(class, distance, span, processing, level, noise)| {
            let (attenuation_per_km, budget) = level.unwrap_or_default();
            PowerLine {
                class,
                distance,
                // At most a thousand spans.
                span: span.map(|span| Distance::from_metres(span.as_millimetres() / 1_000 + 50)),
                processing,
                shadowing: level.is_some(),
                noise,
                attenuation_per_km,
                budget,
            }
        },
    )
}

fn rate_change() -> impl Strategy<Value = RateChange> {
    // Few enough changes for a run of any length.
    let every = option::of((1_u64 << 50..1 << 55).prop_map(Duration::from_nanos));
    (time(0), rate(), every).prop_map(|(at, rate, every)| RateChange { at, rate, every })
}

fn compression() -> impl Strategy<Value = Compression> {
    (1..1_000_u64, 1..100_u64, 0.001..=1.0, 0..1_000_u64).prop_map(
        |(header, compressible, payload_ratio, overhead)| Compression {
            header: Bytes::new(header),
            compressible: Bytes::new(compressible),
            payload_ratio,
            overhead: Bytes::new(overhead),
        },
    )
}

/// An MTU, and the response to larger packets.
fn mtu() -> impl Strategy<Value = (Bytes, Option<PacketTooBig>)> {
    let response = prop::sample::select(&[PacketTooBig::Icmp, PacketTooBig::BlackHole]);
    ((1_280_u64..=65_535).prop_map(Bytes::new), option::of(response))
}

fn direction() -> BoxedStrategy<Direction> {
    let queue = prop_oneof![
        any::<u32>().prop_map(QueueLimit::Packets),
        size().prop_map(QueueLimit::Bytes),
        Just(QueueLimit::Unlimited),
    ];
    let jitter = time(0).prop_map(|size| Jitter { size, shape: JitterShape::Exponential });
    let reorder =
        (probability(), time(0)).prop_map(|(probability, delay)| Reorder { probability, delay });
    let route_change = (1_u64..1 << 40, time(0))
        .prop_map(|(every, delay)| RouteChange { every: Duration::from_nanos(every), delay });
    let outage =
        (time(0), 1_u64..1 << 40, any::<bool>()).prop_map(|(start, length, again)| Outage {
            start,
            length: Duration::from_nanos(length),
            every: again.then(|| Duration::from_nanos(length + 1)),
            mode: if again { OutageMode::Hold } else { OutageMode::Drop },
        });
    let delays = (option::of(jitter), option::of(reorder), option::of(route_change));
    let impairments = (option::of(loss()), delays);
    let channel = (option::of(shadowing()), prop::collection::vec(noise(), 0..3));
    let corrupt = (option::of(probability()), option::of(probability()));
    let damage = (option::of(probability()), corrupt, channel, option::of(compression()));
    let outages = prop::collection::vec(outage, 0..3);
    let mtu = (option::of(mtu()), option::of((88_u64..=65_535).prop_map(Bytes::new)));
    let rates = (rate(), prop::collection::vec(rate_change(), 0..3), mtu);
    // A direction with a scheduler has no queue for all packets.
    let managed = prop_oneof![
        3 => option::of(aqm()).prop_map(|aqm| (aqm, None)),
        1 => scheduler().prop_map(|scheduler| (None, Some(scheduler))),
    ];
    (rates, time(0), (queue, managed), impairments, damage, (outages, reception()))
        .prop_map(
            |(
                (rate, rate_change, (mtu, mss_clamp)),
                delay,
                (queue, (aqm, scheduler)),
                (loss, (jitter, reorder, route_change)),
                damage,
                (outage, reception),
            )| {
                let (duplicate, (corrupt, corrupt_undetected), (shadowing, noise), compression) =
                    damage;
                reception.of(Direction {
                    rate_change,
                    mtu: mtu.map(|(mtu, _)| mtu),
                    packet_too_big: mtu.and_then(|(_, response)| response),
                    mss_clamp,
                    // RED needs a queue that is longer than its minimum.
                    queue: if matches!(aqm, Some(Aqm::Red(_))) {
                        QueueLimit::Unlimited
                    } else {
                        queue
                    },
                    aqm,
                    scheduler,
                    loss,
                    shadowing,
                    noise,
                    jitter,
                    reorder,
                    route_change,
                    duplicate,
                    corrupt,
                    corrupt_undetected,
                    outage,
                    compression,
                    ..Direction::new(rate, delay)
                })
            },
        )
        .boxed()
}

fn link() -> impl Strategy<Value = Link> {
    let plain = (direction(), option::of(direction())).prop_map(|(one, other)| {
        let (both, forward) = if other.is_some() { (None, Some(one)) } else { (Some(one), None) };
        Link {
            from: "meter".into(),
            to: "head-1".into(),
            shared: false,
            medium: None,
            handover: None,
            power_line: None,
            both,
            forward,
            reverse: other,
        }
    });
    // A power line with directions that set some of its keys themselves.
    let line = (option::of(power_line()), any::<[bool; 2]>());
    let of_link = (measured(), option::of(handover()));
    let links = (plain, line, of_link);
    links.prop_map(|(link, (line, [rate, level]), (measured, handover))| {
        let complete = |direction: Option<Direction>| {
            let Some(line) = &line else {
                return direction.map(|direction| measured.clone().of(direction));
            };
            let given = line.direction();
            direction.map(|own| Direction {
                rate: if rate { own.rate } else { given.rate },
                delay: if rate { own.delay } else { given.delay },
                shadowing: if level { own.shadowing.or(given.shadowing) } else { given.shadowing },
                noise: if level && !own.noise.is_empty() { own.noise } else { given.noise },
                ..own
            })
        };
        let Link { both, forward, reverse, .. } = link;
        let [both, forward, reverse] = [both, forward, reverse].map(complete);
        let link = Link { power_line: line, both, forward, reverse, ..link };
        let has_trace = link.given().any(|(_, direction)| direction.trace.is_some());
        Link { handover: handover.filter(|_| !has_trace), ..link }
    })
}

fn medium() -> impl Strategy<Value = Medium> {
    let windows = prop::collection::vec((1..=CsmaCa::WINDOW_MAX, any::<u32>()), 1..5);
    let times = || option::of(time(1));
    let standard = prop::sample::select(&[CsmaStandard::Ieee1901, CsmaStandard::G3Plc]);
    let csma_ca = (standard, times(), times(), option::of(windows), option::of(1..9_u32)).prop_map(
        |(standard, slot, response, stages, attempts)| {
            let (windows, deferral) = stages.map(|stages| stages.into_iter().unzip()).unzip();
            let keys = CsmaCa { standard, slot, response, ..CsmaCa::default() };
            Medium::CsmaCa(CsmaCa { windows, deferral, attempts, ..keys })
        },
    );
    let tdma = (time(1), time(0)).prop_map(|(slot, guard)| {
        let slot = slot + guard;
        Medium::Tdma(Tdma { slot, guard, order: Vec::new() })
    });
    prop_oneof![csma_ca, tdma]
}

/// A link with this medium, if its directions have no key that contradicts contention.
fn share(line: Link, medium: Option<Medium>) -> (Link, Option<Medium>) {
    let contends = matches!(medium, Some(Medium::CsmaCa(_)));
    let is_alone = |direction: &Direction| {
        direction.trace.is_some() || direction.drx.is_some() || direction.radio.is_some()
    };
    let waits = |direction: &Direction| {
        let holds = direction.outage.iter().any(|outage| outage.mode == OutageMode::Hold);
        direction.aqm.is_none()
            && direction.scheduler.is_none()
            && !holds
            && direction.queue != QueueLimit::Packets(0)
    };
    let directions = [line.forward(), line.reverse()];
    let medium = medium.filter(|_| !directions.into_iter().flatten().any(is_alone));
    let medium = medium.filter(|_| line.handover.is_none());
    let medium = medium.filter(|_| !contends || directions.into_iter().flatten().all(waits));
    (Link { medium: medium.as_ref().map(|_| "street".into()), ..line }, medium)
}

fn stack() -> impl Strategy<Value = Stack> {
    let window = prop_oneof![
        // As many segments of the largest size are within the largest window of TCP.
        (1..700_000_u32).prop_map(WindowSize::Segments),
        size().prop_map(WindowSize::Bytes),
    ];
    let congestion_control = option::of(prop::sample::select(CongestionControlAlgorithm::ALL));
    let vegas = option::of(0.0..1e6_f64);
    (size(), window, congestion_control, vegas, option::of(time(1)), any::<bool>()).prop_map(
        |(mss, window, congestion_control, vegas_gamma, rto_min, sack)| Stack {
            profile: if sack { Profile::Rfc } else { Profile::Ns2 },
            congestion_control,
            mss: Some(mss),
            fixed_window: (congestion_control == Some(CongestionControlAlgorithm::Fixed))
                .then_some(window),
            receive_window: Some(window),
            rto_min,
            sack: Some(sack),
            // `medx` refuses marks.
            ecn: Some(!sack && congestion_control != Some(CongestionControlAlgorithm::Medx)),
            mtu_probing: Some(sack),
            vegas_gamma,
            ..Stack::default()
        },
    )
}

const PROFILES: &[ApplicationProfile] = &[
    ApplicationProfile::MeterReading,
    ApplicationProfile::RealTimeMetering,
    ApplicationProfile::Pricing,
    ApplicationProfile::WideAreaMeasurement,
];

fn load() -> BoxedStrategy<Load> {
    let spread =
        prop::sample::select(&[PeriodDistribution::Fixed, PeriodDistribution::Exponential]);
    prop_oneof![
        Just(Load::Bulk),
        size().prop_map(|size| Load::Transfer(Transfer { size })),
        (size(), time(1), time(0), any::<bool>()).prop_map(
            |(size, every, jitter, synchronised)| {
                Load::Periodic(Periodic { size, every, jitter, synchronised })
            }
        ),
        (size(), time(1), any::<bool>()).prop_map(|(size, every, synchronised)| {
            Load::Poisson(Poisson { size, every, synchronised })
        }),
        (time(1), time(1), rate(), size(), spread, any::<bool>()).prop_map(
            |(on, off, rate, size, spread, synchronised)| {
                Load::OnOff(OnOff { on, off, rate: Some(rate), size, spread, synchronised })
            }
        ),
        (size(), time(0), time(0), 1..9_u32, option::of(time(1))).prop_map(
            |(size, at, spread, count, every)| {
                let gap = Duration::from_nanos(1);
                // The event comes again after all have reported.
                let every = every.map(|every| spread + gap * u64::from(count) + every);
                Load::Burst(Burst { size, at, spread, count, gap, every, share: Probability::ONE })
            }
        ),
        (prop::sample::select(PROFILES), option::of(size()), any::<bool>(), any::<bool>())
            .prop_map(|(profile, size, longest, synchronised)| {
                let every = longest.then(|| profile.periods()[1]);
                Load::Application(Application { profile, every, size, synchronised })
            }),
        (size(), size(), time(0), time(0)).prop_map(|(request, response, think, pause)| {
            Load::RequestResponse(RequestResponse { request, response, think, pause })
        }),
        (size(), size(), time(0), option::of(time(1))).prop_map(|(first, answer, after, every)| {
            let step = |writer, size, after| ExchangeStep { writer, size, after };
            let steps = vec![
                step(FlowEnd::From, first, Duration::ZERO),
                step(FlowEnd::From, first, after),
                step(FlowEnd::To, answer, after),
            ];
            let pause = if every.is_some() { Duration::ZERO } else { after };
            Load::Exchange(Exchange { steps, every, pause })
        }),
        (1..=Modbus::REGISTERS_MAX, time(1), time(0)).prop_map(|(registers, every, think)| {
            Load::Modbus(Modbus { registers, every, think })
        }),
        (size(), time(1), time(0)).prop_map(|(data, every, think)| Load::Dlms(Dlms {
            data,
            every,
            think
        })),
        (1..=Iec104::VALUES_MAX, time(1), any::<bool>(), 1..=1_000_u16, time(1)).prop_map(
            |(values, every, synchronised, w, t2)| {
                // Connections that follow each other need a stack that opens and closes them.
                let t1 = (w % 2 == 0).then(|| t2 + t2);
                let controlled = if w % 3 == 0 { FlowEnd::To } else { FlowEnd::From };
                let (k, t3) = (w + w / 2, t2 + t2 + t2);
                let keys = Iec104 { controlled, values, every, synchronised, k, w, t1, t2, t3 };
                Load::Iec104(keys)
            }
        ),
        publications(),
    ]
    .boxed()
}

fn flow() -> impl Strategy<Value = Flow> {
    (load(), 1..1_000_u32, any::<bool>(), any::<bool>()).prop_map(
        |(load, count, routed, turned)| {
            let messages = matches!(load, Load::Periodic(_) | Load::Poisson(_) | Load::OnOff(_));
            // CoAP and DTLS add bytes to a message.
            let size = match &load {
                Load::Periodic(load) => load.size,
                Load::Poisson(load) => load.size,
                Load::OnOff(load) => load.size,
                _ => Bytes::new(u64::MAX),
            };
            let is_coap = messages && routed && size.get() <= 1_400;
            let together = matches!(&load, Load::Poisson(load) if load.synchronised)
                || matches!(&load, Load::OnOff(load) if load.synchronised);
            // Requests have managed connections in one of the two directions, over a stack that
            // opens and closes them.
            let managed = turned && matches!(load, Load::RequestResponse(_));
            // Reports and stations over TCP with the same stack.
            let reports = turned && matches!(load, Load::Burst(_));
            let publishes = matches!(load, Load::Mqtt(_));
            let stations = matches!(&load, Load::Iec104(load) if load.starts_transfer());
            let fast_open = managed && count.is_multiple_of(3);
            let (from, to) = if turned { ("head-1", "meter") } else { ("meter", "head-1") };
            Flow {
                from: from.into(),
                to: to.into(),
                count,
                transport: match (messages, is_coap) {
                    (true, true) => Transport::Coap,
                    (true, false) => Transport::Echo,
                    (false, _) => Transport::Tcp,
                },
                stack: (!messages && !managed && !reports && !publishes && !stations)
                    .then(|| "own".into()),
                to_stack: None,
                load,
                acknowledgement: (reports && routed).then(|| acknowledgement(count)),
                connection: match (managed, routed) {
                    (false, _) => ConnectionPolicy::Persistent,
                    (true, false) => ConnectionPolicy::PerMessage,
                    (true, true) => {
                        ConnectionPolicy::IdleTimeout(Duration::from_nanos(u64::from(count)))
                    }
                },
                fast_open,
                tls: (managed && !fast_open).then(|| tls(count, routed)),
                reconnect: (managed && routed).then(Reconnect::default),
                accept: managed.then_some(AcceptLimits {
                    per_second: count,
                    burst: count,
                    backlog: count,
                }),
                nat: managed.then(|| Nat {
                    idle_timeout: Duration::from_nanos(u64::from(count)),
                    answers: if routed { NatAnswer::Reset } else { NatAnswer::Drop },
                }),
                keep_alive: (managed && routed).then(|| KeepAlive {
                    idle: Duration::from_nanos(u64::from(count)),
                    interval: Duration::from_nanos(u64::from(count)),
                    probes: count,
                }),
                user_timeout: managed.then(|| Duration::from_nanos(u64::from(count))),
                local_ports: (managed && routed).then_some(count),
                coap: (is_coap && turned).then(|| coap(count)),
                dtls: is_coap.then(|| dtls(count, turned)),
                deadline: None,
                ip: if turned { IpVersion::V6 } else { IpVersion::V4 },
                dscp: Dscp::new((count % 64) as u8).unwrap(),
                start: Duration::ZERO,
                start_spread: (turned && !together).then(|| Duration::from_nanos(u64::from(count))),
                route: routed.then(|| vec!["line".into()]),
                reverse_route: None,
            }
        },
    )
}

fn acknowledgement(number: u32) -> Acknowledgement {
    let is_new = number.is_multiple_of(2);
    Acknowledgement {
        size: Bytes::new(u64::from(number)),
        timeout: Duration::from_nanos(u64::from(number)),
        retransmissions: number,
        retransmit_on: if is_new {
            RetransmitOn::NewConnection
        } else {
            RetransmitOn::SameConnection
        },
        window: number,
        think: Duration::from_nanos(u64::from(number % 3)),
    }
}

fn coap(number: u32) -> Coap {
    Coap {
        header: Bytes::new(4),
        response: Bytes::new(4 + u64::from(number)),
        ack_timeout: Duration::from_nanos(u64::from(number)),
        ack_random_factor: 1.0 + f64::from(number) / 1_000.0,
        max_retransmit: number % 8,
    }
}

fn dtls(number: u32, is_old: bool) -> Dtls {
    let size = Bytes::new(13 + u64::from(number));
    Dtls {
        version: if is_old { DtlsVersion::V1_2 } else { DtlsVersion::V1_3 },
        session: if is_old { DtlsSession::PerMessage } else { DtlsSession::Persistent },
        flights: number.is_multiple_of(2).then(|| vec![size; 4]),
        record: number.is_multiple_of(3).then(|| Bytes::new(10)),
    }
}

fn tls(number: u32, is_old: bool) -> Tls {
    let size = Bytes::new(u64::from(number));
    Tls {
        version: if is_old { TlsVersion::V1_2 } else { TlsVersion::V1_3 },
        client_hello: size,
        certificate: size,
        client_certificate: is_old.then_some(size),
        resumption: if is_old { TlsResumption::Always } else { TlsResumption::AfterFirst },
        ticket: size,
        early_data: !is_old && number.is_multiple_of(2),
        flights: number.is_multiple_of(2).then(|| vec![size; 3]),
    }
}

fn attack() -> impl Strategy<Value = Attack> {
    let link = prop::sample::select(&["line", "line[0]"]).prop_map(str::to_owned);
    let flows = option::of(Just(vec!["f0".to_owned()]));
    let checksum = prop::sample::select(&[AlteredChecksum::Valid, AlteredChecksum::Invalid]);
    let packets = (link, flows, probability(), time(0), checksum, 0..3);
    let packets = packets.prop_map(|(link, flows, probability, by, checksum, kind)| match kind {
        0 => AttackAction::Drop(DropAttack { link, flows, probability }),
        1 => AttackAction::Delay(DelayAttack { link, flows, probability, by }),
        _ => AttackAction::Alter(AlterAttack { link, flows, probability, checksum }),
    });
    // With these rates and lengths, the number of datagrams is below the limit.
    let flood = (1_u64..1 << 20, 29_u64..=1_500, any::<bool>()).prop_map(|(rate, size, routed)| {
        AttackAction::Flood(FloodAttack {
            from: "meter".into(),
            to: "head-1".into(),
            rate: BitRate::from_bits_per_sec(rate),
            size: Bytes::new(size),
            route: routed.then(|| vec!["line".into()]),
        })
    });
    let times = (time(0), 1_u64..1 << 40, option::of(time(1)));
    (times, prop_oneof![packets, flood]).prop_map(|((start, length, pause), action)| {
        let length = Duration::from_nanos(length);
        Attack { start, length, every: pause.map(|pause| length + pause), action }
    })
}

fn sweep() -> impl Strategy<Value = Vec<Sweep>> {
    let list = prop::collection::vec(0_i64.., 1..4)
        .prop_map(|list| Values::List(list.into_iter().map(toml::Value::Integer).collect()));
    let range = (1_i64..1_000, 2..5_u32).prop_map(|(last, points)| {
        Values::Range(ValueRange { linear: Some([1.into(), last.into()]), log: None, points })
    });
    let values = prop_oneof![list, range];
    option::of(values).prop_map(|values| {
        let vary = values.map(|values| [("seed".to_owned(), values)].into_iter().collect());
        vary.map(|vary| Sweep { vary, label: None }).into_iter().collect()
    })
}

fn proxy() -> impl Strategy<Value = Proxy> {
    let mode = prop::sample::select(&ProxyMode::ALL);
    let toward = option::of(prop::sample::select(&[FlowEnd::From, FlowEnd::To]));
    let crash = (time(0), any::<bool>()).prop_map(|(at, lose)| Crash {
        at,
        down: Duration::from_millis(u64::from(lose)),
        packets: if lose { PacketsWhileDown::Drop } else { PacketsWhileDown::Forward },
    });
    let crash = prop::collection::vec(crash, 0..2);
    let chosen = (option::of(Just("own".to_owned())), option::of(Just(vec!["f0".to_owned()])));
    (mode, 3_000..1_u64 << 32, chosen, time(0), toward, crash).prop_map(
        |(mode, buffer, (stack, flows), hold, toward, crash)| Proxy {
            mode,
            buffer: Bytes::new(buffer),
            stack,
            max_ack_delay: hold,
            toward,
            flows,
            crash,
        },
    )
}

pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    let head = (".*[a-z].*", "(?s).*", any::<u64>(), 1_u64..1 << 60, any::<bool>());
    let flows = (prop::collection::vec(flow(), 1..4), option::of(attack()));
    let line = (link(), option::of(medium()));
    (head, 1..50_u32, line, (stack(), option::of(proxy())), flows, sweep()).prop_map(
        |(
            (title, description, seed, nanos, recorded),
            count,
            (line, medium),
            nodes,
            (flows, attack),
            sweep,
        )| {
            let (own, proxy) = nodes;
            let (line, medium) = share(line, medium);
            let min = count.max(2);
            let (until, of) = (Probability::ONE, recorded.then_some(DecidingMetric::DelayP98));
            let replications = match seed % 2 {
                0 => Replications::Fixed(count),
                _ => Replications::Until(NarrowInterval { until, min, max: 2 * min, of }),
            };
            Scenario {
                title: title.replace(char::is_control, ""),
                description: description.replace(|c: char| c.is_control() && c != '\n', ""),
                seed,
                duration: Duration::from_nanos(nanos),
                warmup: Duration::from_nanos(nanos - 1),
                replications,
                folder: recorded.then(|| "/srv/readings".into()),
                record: Record {
                    interval: recorded.then(|| Duration::from_nanos(nanos)),
                    pcap: if recorded { vec!["line".into()] } else { Vec::new() },
                    replication: if recorded { count - 1 } else { 0 },
                    each_replication: recorded,
                    ..Record::default()
                },
                node: [
                    ("meter".into(), Node { count, ..Node::default() }),
                    ("head-1".into(), Node { proxy, ..Node::default() }),
                ]
                .into(),
                link: [("line".into(), line)].into(),
                medium: medium.map(|medium| ("street".to_owned(), medium)).into_iter().collect(),
                stack: [("own".into(), own)].into(),
                flow: flows
                    .into_iter()
                    .enumerate()
                    .map(|(i, flow)| (format!("f{i}"), flow))
                    .collect(),
                attack: attack.map(|attack| ("threat".to_owned(), attack)).into_iter().collect(),
                sweep,
                plan: None,
            }
        },
    )
}
