use super::*;
use crate::chain::meter::{Restart, Timer};

fn meters(number: f64, rate: f64, vegas: bool, rules: ModelRules) -> Network {
    let timer = Timer { min: 0.2, max: 60.0, floor_on_variance: false, timestamps: false };
    Network {
        resources: vec![Resource {
            rate,
            capacity: 101,
            copies: 1.0,
            acknowledges: false,
            window_limit: None,
        }],
        classes: vec![Class {
            senders: number,
            segment_bits: 1920.0,
            path: vec![0],
            forward_delay: 0.05,
            reverse_delay: 0.05,
            independent_loss: 0.0,
            source: DataSource::Meter {
                tcp: MeterTcp { vegas, window: 2, timer, restart: Restart::Never },
                demand: Demand::Greedy { on: 0.1, off: 60.0 },
            },
        }],
        rules,
    }
}

#[test]
fn a_fast_link_causes_no_loss() {
    let solution = meters(1_000.0, 1e9, false, ModelRules::Refined).solve();
    assert!(solution.converged && solution.classes[0].loss < 1e-12);
    assert!((solution.classes[0].rtt - 0.1).abs() < 1e-4);
}

#[test]
fn the_solution_does_not_depend_on_the_starting_point() {
    let mut work = Workspace::default();
    for rules in [ModelRules::Paper, ModelRules::Refined] {
        for vegas in [false, true] {
            for number in [1e7, 3e4, 2e3, 4e5, 1.0, 1e5] {
                let network = meters(number, 2e6, vegas, rules);
                let (again, alone) = (network.solve_from(&mut work), network.solve());
                let difference = (again.resources[0].rho / alone.resources[0].rho).ln().abs();
                assert!(difference < 1e-7 && again.converged, "{number} {rules:?}: {difference}");
            }
        }
    }
}

#[test]
fn carried_load_equals_the_delivery_rate() {
    for rules in [ModelRules::Paper, ModelRules::Refined] {
        for vegas in [false, true] {
            for number in [1e3, 3e4, 1e5, 4e5, 1e7] {
                let solution = meters(number, 2e6, vegas, rules).solve();
                let rates = solution.classes[0].sent.rates;
                let carried = number * rates.arriving * 1920.0 / 2e6;
                assert!(solution.converged, "{number} {solution:?}");
                let queue = solution.resources[0];
                assert!((carried / queue.carried - 1.0).abs() < 1e-6);
                assert!(rates.offered >= rates.arriving);
            }
        }
    }
}
