//! Directions of radio links, and of links that were measured.

use gridhaul_scenario::scenario::{
    Aqm, Direction, Drx, Handover, LinkQuality, LinkTrace, MahimahiTrace, OutageMode,
    PacketsInHandover, Radio, RadioStandard, StepTrace,
};
use gridhaul_scenario::units::{BitRate, Duration, Probability};
use proptest::option;
use proptest::prelude::*;

use super::{probability, rate, time};

pub(super) fn handover() -> impl Strategy<Value = Handover> {
    let packets = prop::sample::select(&[PacketsInHandover::Forward, PacketsInHandover::Drop]);
    let at = prop::collection::vec(time(0), 1..4);
    (option::of(time(1)), at, time(1), packets).prop_map(|(pause, at, interruption, packets)| {
        let every = pause.map(|pause| interruption + pause);
        let at = if every.is_some() { Vec::new() } else { at };
        Handover { every, at, interruption, packets }
    })
}

/// Keys of the receiving device and of the radio interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reception {
    drx: Option<Drx>,
    radio: Option<Radio>,
}

pub(super) fn reception() -> impl Strategy<Value = Reception> {
    let drx = (time(1), time(0), time(0));
    let drx = drx.prop_map(|(cycle, inactivity, delay)| Drx { cycle, inactivity, delay });
    let standard = prop::sample::select(&[RadioStandard::Lte, RadioStandard::Nr]);
    let slot = (Radio::SLOT_MIN.as_nanos()..1 << 40).prop_map(Duration::from_nanos);
    let times = (option::of((slot, time(0))), option::of((time(1), option::of(time(0)))));
    let errors = (option::of(probability()), option::of(probability()));
    let transmissions = option::of(1..=Radio::TRANSMISSIONS_MAX);
    let radio = (standard, times, errors, transmissions).prop_map(
        |(standard, (slot, request), (block_error, repetition_error), transmissions)| {
            let (request_every, grant_delay) = request.unzip();
            Radio {
                standard,
                slot: slot.map(|(slot, _)| slot),
                block_error,
                repetition_error,
                round_trip: slot.map(|(slot, more)| slot + more),
                transmissions,
                request_every,
                grant_delay: grant_delay.flatten(),
            }
        },
    );
    (option::of(drx), option::of(radio)).prop_map(|(drx, radio)| Reception { drx, radio })
}

impl Reception {
    /// The direction with those keys that its queue permits.
    pub(super) fn of(self, direction: Direction) -> Direction {
        let is_early = matches!(direction.aqm, Some(Aqm::Red(_) | Aqm::Pie(_)));
        let has_classes = direction.scheduler.is_some();
        Direction {
            drx: self.drx.filter(|_| !is_early && !has_classes),
            radio: self.radio.filter(|_| !has_classes),
            ..direction
        }
    }
}

/// The quantity that was measured on a link.
#[derive(Debug, Clone)]
pub(super) enum Measured {
    Nothing,
    Trace(LinkTrace),
    Quality(LinkQuality),
}

pub(super) fn measured() -> impl Strategy<Value = Measured> {
    let mahimahi = any::<bool>().prop_map(|repeat| {
        LinkTrace::Mahimahi(MahimahiTrace { file: "traces/up.mahi".into(), repeat })
    });
    let steps = option::of(time(1))
        .prop_map(|every| LinkTrace::Steps(StepTrace { file: "down.csv".into(), every }));
    let rates = prop::collection::vec(rate(), 2..5);
    let losses = option::of(prop::collection::vec(probability(), 2..12));
    let delays = option::of(prop::collection::vec(time(0), 2..4));
    let quality =
        (rates, losses, delays, any::<bool>()).prop_map(|(rate, loss, delay, common_rank)| {
            LinkQuality {
                file: None,
                rank: Vec::new(),
                rate,
                loss: loss.unwrap_or_default(),
                delay: delay.unwrap_or_default(),
                common_rank,
            }
        });
    let ranked = (rate(), rate(), rate(), 0.001..0.999).prop_map(|(low, middle, high, rank)| {
        let rank = Probability::new(rank).unwrap();
        let rank = vec![Probability::ZERO, rank, Probability::ONE];
        LinkQuality { rank, rate: vec![low, middle, high], ..LinkQuality::default() }
    });
    let in_file = any::<bool>().prop_map(|common_rank| {
        let file = Some("meters.csv".into());
        LinkQuality { file, common_rank, ..LinkQuality::default() }
    });
    prop_oneof![
        2 => Just(Measured::Nothing),
        1 => prop_oneof![mahimahi, steps].prop_map(Measured::Trace),
        1 => prop_oneof![quality, ranked, in_file].prop_map(Measured::Quality),
    ]
}

impl Measured {
    /// The direction with the measurement, if its other keys permit it.
    pub(super) fn of(self, direction: Direction) -> Direction {
        let holds = direction.outage.iter().any(|outage| outage.mode == OutageMode::Hold);
        let receives = direction.drx.is_some() || direction.radio.is_some();
        match self {
            Self::Trace(trace) if direction.rate_change.is_empty() && !holds && !receives => {
                Direction { rate: BitRate::default(), trace: Some(trace), ..direction }
            }
            Self::Quality(quality) if direction.rate_change.is_empty() => {
                let loss = direction.loss.filter(|_| quality.loss.is_empty());
                let rate = BitRate::default();
                Direction { rate, loss, quality: Some(quality), ..direction }
            }
            _ => direction,
        }
    }
}
