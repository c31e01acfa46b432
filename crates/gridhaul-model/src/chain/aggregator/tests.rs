use super::*;
use crate::queue::Mm1b;

fn sent(control: Control, window: u32, loss: f64, rho: f64, rules: ModelRules) -> (f64, f64) {
    let timer = Timer { min: 0.2, max: 60.0, floor_on_variance: false, timestamps: false };
    let tcp = AggregatorTcp { control, window, timer };
    let delay = Mm1b::new(rho, 41).unwrap().delay();
    let wan = WanConditions { loss, rtt: 0.1, base: 0.1, delay, service: 0.001 };
    let chain = aggregator(&tcp, &wan, rules);
    let shares = chain.stationary();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(chain.imbalance(&shares) < 1e-12);
    (chain.rates(&shares).offered, chain.imbalance(&shares))
}

const RENO: Control = Control::Reno { recovers_multiple_losses: false };
const VEGAS: Control = Control::Vegas { alpha: 1.0, beta: 3.0 };

#[test]
fn without_loss_the_window_is_full() {
    for rules in [ModelRules::Paper, ModelRules::Refined] {
        let (offered, _) = sent(RENO, 64, 0.0, 0.5, rules);
        assert!((offered / 640.0 - 1.0).abs() < 1e-3, "{offered}");
        // Without queueing, Vegas also grows to the window limit.
        let (offered, _) = sent(VEGAS, 64, 0.0, 1e-12, rules);
        assert!((offered / 640.0 - 1.0).abs() < 1e-3, "{offered}");
    }
}

#[test]
fn a_window_of_one_segment_has_two_states() {
    // One segment per round trip of 0.1 s; a quarter of them is lost and costs a timeout of 0.2 s,
    // so that a segment takes 0.15 s.
    let (offered, _) = sent(RENO, 1, 0.25, 0.5, ModelRules::Paper);
    assert!((offered - 1.0 / 0.15).abs() < 1e-9, "{offered}");
}

#[test]
fn throughput_falls_with_loss() {
    for control in [RENO, VEGAS, Control::Reno { recovers_multiple_losses: true }] {
        for rules in [ModelRules::Paper, ModelRules::Refined] {
            let mut last = f64::INFINITY;
            for loss in [1e-4, 1e-3, 1e-2, 0.05, 0.2, 0.5] {
                let (offered, _) = sent(control, 64, loss, 0.9, rules);
                assert!(offered < last, "{control:?} {rules:?} {loss}");
                last = offered;
            }
        }
    }
}

#[test]
fn reno_follows_the_square_root_law() {
    // sqrt(3/2)/(RTT sqrt(p)) = 387 at p = 1e-3 and a round trip of 0.1 s; timeouts reduce this
    // slightly.
    let (offered, _) = sent(RENO, 400, 1e-3, 0.9, ModelRules::Refined);
    assert!((300.0..420.0).contains(&offered), "{offered}");
}
