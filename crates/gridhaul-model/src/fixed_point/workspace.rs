//! State that one solution leaves for the next: starting point, elimination plans, and the last
//! result of each chain.

use crate::chain::aggregator::{AggregatorTcp, WanConditions, aggregator};
use crate::chain::meter::MeterSolver;
use crate::chain::{Elimination, Rates};
use crate::model_rules::ModelRules;

/// Starting point of the solution of a network; if empty, a load of 1 in each queue.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// Load of each queue.
    pub(super) rho: Vec<f64>,
    /// d excess/d ln ρ of each queue.
    pub(super) slope: Vec<f64>,
    /// One for each class.
    pub(super) classes: Vec<ClassMemory>,
    /// Rate of an aggregator's buffer when it was last solved, in bit/s.
    served: Option<f64>,
}

/// Cached state of a class.
#[derive(Debug, Clone, Default)]
pub(super) struct ClassMemory {
    pub(super) meter: MeterSolver,
    pub(super) region: Workspace,
    elimination: Elimination,
    saturated: Option<((AggregatorTcp, WanConditions, ModelRules), Rates)>,
}

impl Workspace {
    /// Resets the state if the network has a different structure.
    pub(super) fn fit(&mut self, queues: usize, classes: usize) {
        if self.rho.len() != queues || self.classes.len() != classes {
            *self = Self { served: self.served, ..Self::default() };
            self.rho = vec![1.0; queues];
            self.slope = vec![-1.0; queues];
            self.classes = vec![ClassMemory::default(); classes];
        }
        for rho in self.rho.iter_mut().filter(|rho| !(rho.is_finite() && **rho > 0.0)) {
            *rho = 1.0;
        }
    }

    /// Scales the load of a buffer whose service rate has changed.
    pub(super) fn serve(&mut self, buffer: usize, rate: f64) {
        if let (Some(before), Some(rho)) = (self.served, self.rho.get_mut(buffer)) {
            *rho *= before / rate;
        }
        self.served = Some(rate);
    }
}

impl ClassMemory {
    /// Rates of an aggregator that always has data.
    pub(super) fn saturated(
        &mut self,
        tcp: &AggregatorTcp,
        wan: &WanConditions,
        rules: ModelRules,
    ) -> Rates {
        let key = (*tcp, *wan, rules);
        match self.saturated {
            Some((last_input, rates)) if last_input == key => rates,
            _ => {
                let chain = aggregator(tcp, wan, rules);
                let rates = chain.rates(self.elimination.shares(&chain));
                self.saturated = Some((key, rates));
                rates
            }
        }
    }
}
