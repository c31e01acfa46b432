//! The rates of one sender over queues of known loss and delay.

use super::super::resource::Response;
use super::super::workspace::{ClassMemory, Workspace};
use super::{Class, DataSource, Network, Region, Solution, Stream};
use crate::chain::Rates;
use crate::chain::aggregator::WanConditions;
use crate::chain::meter::{Conditions, Demand, MeterOutput};
use crate::model_rules::ModelRules;
use crate::queue::Mm1b;

impl Network {
    /// The result for one sender of a class over queues with these responses.
    pub(super) fn stream(
        &self,
        class: &Class,
        responses: &[Response],
        memory: &mut ClassMemory,
    ) -> Stream {
        let path = self.path(class, responses);
        let mut conditions = Conditions {
            loss: path.loss,
            rtt: path.rtt,
            pairing: 0.0,
            variation: 0.0,
            window_closed: self.window_closed(class, responses),
        };
        let (sent, region) = match &class.source {
            DataSource::Meter { tcp, demand } => {
                conditions.pairing = self.pairing(class, responses, path.loss);
                conditions.variation = self.variation(class, responses, demand);
                (memory.meter.sent(tcp, demand, &conditions, self.rules), None)
            }
            DataSource::Aggregator { tcp, payload_bits, region } => {
                let saturated =
                    memory.saturated(tcp, &self.wan(class, &path, responses), self.rules);
                let (sent, region) =
                    self.forward(saturated, *payload_bits, region, &mut memory.region);
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
        let mut delivered = 1.0 - class.independent_loss;
        let (mut delay, mut rtt) = (class.forward_delay, class.forward_delay + class.reverse_delay);
        let mut waits = 0.0;
        for &index in &class.path {
            let (resource, response) = (self.resources[index], responses[index]);
            delivered *= 1.0 - response.loss;
            delay += response.wait;
            let own = class.segment_bits / resource.rate;
            if resource.acknowledges && self.rules == ModelRules::Refined {
                continue;
            }
            delay += own;
            rtt += response.wait + own;
            waits += response.wait;
        }
        // Equation 2 as printed compares the propagation delay with the time in the system.
        let propagation = class.forward_delay + class.reverse_delay;
        let printed = self.rules == ModelRules::Printed;
        let base = if printed { propagation } else { rtt - waits }.max(RTT_MIN);
        PathState { loss: (1.0 - delivered).clamp(0.0, 1.0), delay, rtt: rtt.max(RTT_MIN), base }
    }

    /// Network conditions of an aggregator's connection.
    fn wan(&self, class: &Class, path: &PathState, responses: &[Response]) -> WanConditions {
        // Vegas responds to the queue with the longest waiting time.
        let longest =
            class.path.iter().max_by(|&&a, &&b| responses[a].wait.total_cmp(&responses[b].wait));
        let (rho, capacity, service) = longest.map_or((0.0, 1, 1.0), |&index| {
            (responses[index].rho, self.resources[index].capacity, responses[index].service)
        });
        let empty = || Mm1b::new(0.0, 1).expect("an empty queue exists");
        let delay = Mm1b::new(rho, capacity.max(1)).unwrap_or_else(empty).delay();
        WanConditions { loss: path.loss, rtt: path.rtt, base: path.base, delay, service }
    }

    /// Rates of an aggregator's upstream connection: the data of its region, at most the capacity
    /// of the connection.
    ///
    /// The paper always loads the network with `saturated` and serves the buffer at the rate of all
    /// segments sent, retransmissions included (section 4.1, item 3). This holds while aggregators
    /// always have data. Otherwise a connection is only as busy as its buffer, which is served at
    /// the rate of *new* segments.
    fn forward(
        &self,
        saturated: Rates,
        payload_bits: f64,
        region: &Region,
        work: &mut Workspace,
    ) -> (MeterOutput, Solution) {
        let paper = self.rules.are_of_a_paper();
        let mut inner = region.network.clone();
        let service = if paper {
            saturated.offered
        } else if inner.resources[region.buffer].window_limit.is_some() {
            // The chain counts some retransmissions after timeouts as new. A loop of windows and
            // buffer carries no more than what arrives.
            saturated.fresh.min(saturated.arriving)
        } else {
            saturated.fresh
        };
        inner.resources[region.buffer].rate =
            (service * payload_bits / region.payload_share).max(f64::MIN_POSITIVE);
        work.serve(region.buffer, inner.resources[region.buffer].rate);
        let solution = inner.solve_from(work);
        let busy = if paper { 1.0 } else { solution.resources[region.buffer].carried.min(1.0) };
        let rates = Rates {
            offered: saturated.offered * busy,
            fresh: saturated.fresh * busy,
            arriving: saturated.arriving * busy,
        };
        (MeterOutput { rates, backlog: false, more: 0.0 }, solution)
    }

    /// Correlation of the losses of two segments that are sent together. It falls if the upstream
    /// links space them by more than a service time. Queues are weighted by their contribution to
    /// the loss, so that the result is continuous.
    fn pairing(&self, class: &Class, responses: &[Response], loss: f64) -> f64 {
        let all = (-loss).ln_1p();
        if all >= 0.0 {
            return 0.0;
        }
        let (mut pairing, mut spacing) = (0.0, 0.0_f64);
        for &queue in &class.path {
            let response = responses[queue];
            // With 100 % loss, both logarithms are infinite.
            let part = (-response.loss).ln_1p() / all;
            let share = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
            pairing += share * (-spacing / response.service).exp();
            spacing = spacing.max(class.segment_bits / self.resources[queue].rate);
        }
        pairing.min(1.0)
    }

    /// Time that the segments of a class spend in the buffers that keep their window closed.
    fn window_closed(&self, class: &Class, responses: &[Response]) -> f64 {
        let closing = class.path.iter().filter(|&&at| self.resources[at].window_limit.is_some());
        closing.map(|&at| responses[at].wait).sum()
    }

    /// Variation of the round-trip times of a class for an on-off application
    /// ([`Conditions::variation`]), the time with a closed window included. Waiting times in
    /// different queues are assumed independent. The paper's chain uses the mean only.
    fn variation(&self, class: &Class, responses: &[Response], demand: &Demand) -> f64 {
        let relaxation_rate = demand.relaxation_rate();
        if self.rules.are_of_a_paper() || relaxation_rate <= 0.0 {
            return 0.0;
        }
        let waits = class.path.iter().filter(|&&index| {
            let resource = self.resources[index];
            !resource.acknowledges || resource.window_limit.is_some()
        });
        let waiting_time = |&index: &usize| {
            let (resource, response) = (self.resources[index], responses[index]);
            let services = relaxation_rate * response.service;
            let wait = match resource.finite_source(response.rho) {
                Some(queue) => queue.log_wait_transform(services),
                None => {
                    Mm1b::new(response.rho, resource.capacity.max(1))?.log_wait_transform(services)
                }
            };
            Some(wait + relaxation_rate * response.wait)
        };
        waits.filter_map(waiting_time).sum::<f64>().max(0.0)
    }
}

/// Lower bound of the round-trip time, in seconds.
const RTT_MIN: f64 = 1e-7;

/// Loss and delay of a path for a class.
struct PathState {
    loss: f64,
    delay: f64,
    rtt: f64,
    /// Round-trip time without queueing.
    base: f64,
}
