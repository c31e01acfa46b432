//! What one sender sends through queues of known loss and delay.

use super::super::resource::Response;
use super::super::workspace::{ClassMemory, Workspace};
use super::{Class, DataSource, Network, Region, Solution, Stream};
use crate::chain::Rates;
use crate::chain::aggregator::WanConditions;
use crate::chain::meter::{Conditions, Demand, MeterOutput};
use crate::model_rules::ModelRules;
use crate::queue::Mm1b;

impl Network {
    /// What one sender of a class sends through queues that behave like this.
    pub(super) fn stream(
        &self,
        class: &Class,
        responses: &[Response],
        seen: &mut ClassMemory,
    ) -> Stream {
        let path = self.path(class, responses);
        let mut conditions =
            Conditions { loss: path.loss, rtt: path.rtt, pairing: 0.0, variation: 0.0 };
        let (sent, region) = match &class.source {
            DataSource::Meter { tcp, demand } => {
                conditions.pairing = self.pairing(class, responses, path.loss);
                conditions.variation = self.variation(class, responses, demand);
                (seen.meter.sent(tcp, demand, &conditions, self.rules), None)
            }
            DataSource::Aggregator { tcp, payload_bits, region } => {
                let most = seen.most(tcp, &self.wan(class, &path, responses), self.rules);
                let (sent, region) = self.forward(most, *payload_bits, region, &mut seen.region);
                (sent, Some(Box::new(region)))
            }
        };
        let offered = sent.rates.offered;
        let arriving = if offered > 0.0 { sent.rates.arriving / offered } else { 1.0 - path.loss };
        Stream {
            sent,
            loss: (1.0 - arriving).clamp(0.0, 1.0),
            delay: path.delay,
            rtt: path.rtt,
            conditions,
            region,
        }
    }

    fn path(&self, class: &Class, responses: &[Response]) -> PathState {
        let mut passing = 1.0 - class.noise;
        let (mut delay, mut rtt) = (class.out, class.out + class.back);
        let mut waits = 0.0;
        for &index in &class.path {
            let (resource, response) = (self.resources[index], responses[index]);
            passing *= 1.0 - response.loss;
            delay += response.wait;
            let own = class.segment_bits / resource.rate;
            if resource.acknowledges && self.rules == ModelRules::Refined {
                continue;
            }
            delay += own;
            rtt += response.wait + own;
            waits += response.wait;
        }
        let base = (rtt - waits).max(SHORTEST);
        PathState { loss: (1.0 - passing).clamp(0.0, 1.0), delay, rtt: rtt.max(SHORTEST), base }
    }

    /// What the network does to an aggregator.
    fn wan(&self, class: &Class, path: &PathState, responses: &[Response]) -> WanConditions {
        // The queue that Vegas listens to is the one in which most waits.
        let longest =
            class.path.iter().max_by(|&&a, &&b| responses[a].wait.total_cmp(&responses[b].wait));
        let (rho, room, service) = longest.map_or((0.0, 1, 1.0), |&index| {
            (responses[index].rho, self.resources[index].room, responses[index].service)
        });
        let empty = || Mm1b::new(0.0, 1).expect("an empty queue exists");
        let delay = Mm1b::new(rho, room.max(1)).unwrap_or_else(empty).delay();
        WanConditions { loss: path.loss, rtt: path.rtt, base: path.base, delay, service }
    }

    /// An aggregator forwards what its region brings, at most what its connection takes.
    ///
    /// The paper loads the network with `most` in any case and gives the region's queue the rate of
    /// all that is sent, repeats included (section 4.1, item 3). That is right while aggregators are
    /// never without data; below, a connection is only as busy as its buffer, which serves at the
    /// rate at which *new* segments leave.
    fn forward(
        &self,
        most: Rates,
        payload_bits: f64,
        region: &Region,
        work: &mut Workspace,
    ) -> (MeterOutput, Solution) {
        let paper = self.rules == ModelRules::Paper;
        let mut inner = region.network.clone();
        let service = if paper { most.offered } else { most.fresh };
        inner.resources[region.buffer].rate =
            (service * payload_bits / region.payload_share).max(f64::MIN_POSITIVE);
        work.serve(region.buffer, inner.resources[region.buffer].rate);
        let solution = inner.solve_from(work);
        let busy = if paper { 1.0 } else { solution.resources[region.buffer].carried().min(1.0) };
        let rates = Rates {
            offered: most.offered * busy,
            fresh: most.fresh * busy,
            arriving: most.arriving * busy,
        };
        (MeterOutput { rates, backlog: false, more: 0.0 }, solution)
    }

    /// How far two segments that are sent together meet the same queue: not if the links before it
    /// space them by more than a service. Each queue counts as much as it adds to the loss, so that
    /// nothing jumps where one begins to lose more than another.
    fn pairing(&self, class: &Class, responses: &[Response], loss: f64) -> f64 {
        let all = (-loss).ln_1p();
        if all >= 0.0 {
            return 0.0;
        }
        let (mut pairing, mut spacing) = (0.0, 0.0_f64);
        for &queue in &class.path {
            let response = responses[queue];
            // Where nothing gets through, both are infinite.
            let part = (-response.loss).ln_1p() / all;
            let share = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
            pairing += share * (-spacing / response.service).exp();
            spacing = spacing.max(class.segment_bits / self.resources[queue].rate);
        }
        pairing.min(1.0)
    }

    /// How much the round trips of a class vary, for an application that forgets ([`Conditions::variation`]).
    /// The waits in different queues are taken as independent. The paper's chain knows the mean only.
    fn variation(&self, class: &Class, responses: &[Response], demand: &Demand) -> f64 {
        let forgets = demand.forgets();
        if self.rules == ModelRules::Paper || forgets <= 0.0 {
            return 0.0;
        }
        let waits = class.path.iter().filter(|&&index| !self.resources[index].acknowledges);
        let of = |&index: &usize| {
            let (resource, response) = (self.resources[index], responses[index]);
            let queue = Mm1b::new(response.rho, resource.room.max(1))?;
            let wait = queue.log_wait_transform(forgets * response.service);
            Some(wait + forgets * response.wait)
        };
        waits.filter_map(of).sum::<f64>().max(0.0)
    }
}

/// Shortest round trip that is computed with, in seconds.
const SHORTEST: f64 = 1e-7;

/// What a path does to the segments of a class.
struct PathState {
    loss: f64,
    delay: f64,
    rtt: f64,
    /// Round trip without waiting.
    base: f64,
}
