use super::super::{Timer, sent};
use super::*;
use crate::model_rules::ModelRules;

const TIMER: Timer = Timer { min: 0.2, max: 60.0, floor_on_variance: false, timestamps: false };
const BURSTS: Demand = Demand::Greedy { on: 0.1, off: 60.0 };

fn rates(vegas: bool, demand: &Demand, loss: f64) -> crate::chain::Rates {
    restarting(vegas, Restart::Never, demand, loss)
}

fn restarting(vegas: bool, restart: Restart, demand: &Demand, loss: f64) -> crate::chain::Rates {
    let tcp = MeterTcp { vegas, window: 2, timer: TIMER, restart };
    sent(
        &tcp,
        demand,
        &Conditions { loss, rtt: 0.1, pairing: 0.0, variation: 0.0, window_closed: 0.0 },
        ModelRules::Refined,
    )
    .rates
}

#[test]
fn without_loss_a_burst_is_counted_by_hand() {
    // Two segments, then two more after every round trip for which the burst continues: rounds =
    // 1/(1 − P(on after RTT)), cycle = 60 s + rounds × 0.1 s.
    let share = 0.1 / 60.1;
    let on = share + (1.0 - share) * (-0.1_f64 * (10.0 + 1.0 / 60.0)).exp();
    let rounds = 1.0 / (1.0 - on);
    let expected = 2.0 * rounds / (60.0 + 0.1 * rounds);
    let rates = rates(false, &BURSTS, 0.0);
    assert!((rates.offered / expected - 1.0).abs() < 1e-12, "{rates:?} {expected}");
    assert_eq!(rates.offered, rates.fresh);
}

#[test]
fn a_message_of_one_segment_is_sent_until_it_arrives() {
    // Each message is transmitted 1/(1 − p) times on average, independent of the timer.
    let demand = Demand::Messages { per_second: 1.0 / 600.0, segments: 1 };
    for loss in [0.0, 0.1, 0.5] {
        let rates = rates(false, &demand, loss);
        assert!((rates.fresh * 600.0 - 1.0).abs() < 1e-9);
        assert!((rates.offered / rates.fresh * (1.0 - loss) - 1.0).abs() < 0.01, "{loss}");
    }
}

#[test]
fn every_new_segment_is_delivered() {
    // Reno retransmits no segment that has arrived: the delivery rate equals the rate of new
    // segments.
    for loss in [0.05, 0.3, 0.7, 0.9] {
        let rates = rates(false, &BURSTS, loss);
        assert!((rates.offered * (1.0 - loss) / rates.fresh - 1.0).abs() < 1e-9, "{loss}");
    }
}

#[test]
fn vegas_sends_more_than_reno_and_both_less_with_more_loss() {
    let mut last = [f64::INFINITY; 2];
    for loss in [0.3, 0.5, 0.7, 0.8, 0.9, 0.95] {
        let now = [false, true].map(|vegas| rates(vegas, &BURSTS, loss).fresh);
        assert!(now[0] < last[0] && now[1] < last[1]);
        last = now;
        assert!(rates(true, &BURSTS, loss).offered > rates(false, &BURSTS, loss).offered);
    }
}

#[test]
fn after_a_silence_a_burst_begins_with_one_segment() {
    // One, then two after every round trip for which the burst continues; with two from the start
    // if the silence was shorter than the timeout of 0.2 s.
    let share = 0.1 / 60.1;
    let on = share + (1.0 - share) * (-0.1_f64 * (10.0 + 1.0 / 60.0)).exp();
    let begin = 2.0 - (-0.2_f64 / 60.0).exp();
    let expected = (begin + 2.0 * on / (1.0 - on)) / (60.0 + 0.1 / (1.0 - on));
    let from_ack = Restart::OneSegment { from_ack: true };
    let rates = restarting(false, from_ack, &BURSTS, 0.0);
    assert!((rates.offered / expected - 1.0).abs() < 1e-12, "{rates:?} {expected}");
    // From the last segment the silence is a round trip longer.
    let begin = 2.0 - (-0.1_f64 / 60.0).exp();
    let expected = (begin + 2.0 * on / (1.0 - on)) / (60.0 + 0.1 / (1.0 - on));
    let from_segment = Restart::OneSegment { from_ack: false };
    let rates = restarting(false, from_segment, &BURSTS, 0.0);
    assert!((rates.offered / expected - 1.0).abs() < 1e-12, "{rates:?} {expected}");
}

#[test]
fn a_message_of_several_segments_is_sent_whole_after_a_silence() {
    let from_ack = Restart::OneSegment { from_ack: true };
    for segments in [2, 3, 7] {
        let demand = Demand::Messages { per_second: 1.0 / 600.0, segments };
        for restart in [from_ack, Restart::TimerRunsOn] {
            let rates = restarting(restart == Restart::TimerRunsOn, restart, &demand, 0.1);
            let wanted = f64::from(segments) / 600.0;
            assert!((rates.fresh / wanted - 1.0).abs() < 1e-9, "{segments} {restart:?}");
        }
    }
}

#[test]
fn a_timer_that_kept_running_often_fires_before_the_acknowledgement() {
    // A message a second and timeouts of 0.2, 0.4, 0.8 s... from the last acknowledgement on,
    // which comes 0.1 s after a message is sent: the timer fires in the last 0.1 s of each.
    // With S the silence, exponential with mean 1 s: P(0.1 < S < 0.2) + P(0.5 < S < 0.6)
    // + P(1.3 < S < 1.4) + ... After such an early firing the timeout stays doubled.
    let demand = Demand::Messages { per_second: 1.0, segments: 1 };
    let minimum: f64 = (0..12)
        .map(|d| 0.2 * (f64::from(1_u32 << (d + 1)) - 1.0))
        .map(|fires: f64| (-(fires - 0.1)).exp() - (-fires).exp())
        .sum();
    let rates = restarting(true, Restart::TimerRunsOn, &demand, 0.0);
    let retransmitted = rates.offered / rates.fresh - 1.0;
    assert!(
        retransmitted > 0.8 * minimum && retransmitted < 1.2 * minimum,
        "{retransmitted} {minimum}"
    );
    // With one burst per minute, less than 2 % of the segments are affected.
    let rates = restarting(true, Restart::TimerRunsOn, &BURSTS, 0.0);
    assert!((1e-4..0.02).contains(&(rates.offered / rates.fresh - 1.0)), "{rates:?}");
}

#[test]
fn a_restart_reduces_the_offered_load_under_loss() {
    // Reno sends one segment less in each burst, which matters less the more is retransmitted;
    // Vegas waits longer for each retransmission.
    let from_ack = Restart::OneSegment { from_ack: true };
    for (loss, reno, vegas) in [(0.1, 0.9, 1.0), (0.5, 0.98, 0.95), (0.8, 0.99, 1.0)] {
        for (share, vegas, restart) in
            [(reno, false, from_ack), (vegas, true, Restart::TimerRunsOn)]
        {
            let (with, without) =
                (restarting(vegas, restart, &BURSTS, loss), rates(vegas, &BURSTS, loss));
            assert!(with.offered < share * without.offered, "{loss} {vegas}: {with:?}");
        }
    }
}
