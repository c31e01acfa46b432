//! Checks of schedulers.

use std::collections::BTreeMap;

use super::Report;
use crate::scenario::route::Network;
use crate::scenario::{Aqm, Direction, Hop, NAME_RULE, Scenario, Scheduler, SchedulerClass};

/// Largest number of classes.
const CLASSES_MAX: usize = 64;
/// Largest weight and quantum: a round of the largest weight is below 64 GB.
const WEIGHT_MAX: u32 = 1_000;
const QUANTUM_MAX: u64 = 64_000_000;

impl Report<'_> {
    /// Checks the schedulers of all directions; `network` is given if nodes and links are valid.
    pub(super) fn schedulers(&mut self, network: Option<&Network<'_>>) {
        for (index, (name, link)) in self.scenario.link.iter().enumerate() {
            for (side, direction) in link.given() {
                let Some(scheduler) = &direction.scheduler else { continue };
                let key = format!("link.{name}.{side}.scheduler");
                self.scheduler(&key, scheduler, direction);
                let sides = match side {
                    "both" => vec![true, false],
                    side => vec![side == "forward"],
                };
                let hops: Vec<_> =
                    sides.into_iter().map(|forward| Hop { link: index, forward }).collect();
                self.classes_have_traffic(&key, scheduler, &hops, network);
            }
        }
    }

    fn scheduler(&mut self, key: &str, scheduler: &Scheduler, direction: &Direction) {
        if direction.aqm.is_some() {
            self.refuse(
                format!("{key}.class"),
                "the direction has `aqm`, but each class of a scheduler has its own queue",
                "move `aqm` to the classes",
            );
        }
        if direction.active_shaper().is_some() {
            self.refuse(
                key,
                "the direction has a `shaper` too, in which packets would wait before the classes",
                "remove `shaper`, and give the classes a `rate`",
            );
        }
        let quantum = scheduler.quantum.get();
        if quantum == 0 || quantum > QUANTUM_MAX {
            self.refuse(
                format!("{key}.quantum"),
                "the quantum must be above 0 and at most 64 MB",
                "write \"1500 B\", or leave it out",
            );
        }
        if scheduler.class.len() > CLASSES_MAX {
            self.refuse(
                format!("{key}.class"),
                format!("there are {} classes, and at most {CLASSES_MAX}", scheduler.class.len()),
                "combine classes",
            );
        }
        self.one_class_for_other_packets(key, scheduler);
        let mut selected = BTreeMap::new();
        let mut ranks = BTreeMap::new();
        for (name, class) in &scheduler.class {
            let location = format!("{key}.class.{name}");
            if !Scenario::is_name(name) {
                self.refuse(
                    format!("{key}.class.{name:?}"),
                    format!("{name:?} is not a valid name of a class"),
                    NAME_RULE,
                );
            }
            self.scheduler_class(&location, class);
            let code_points = class.dscp.iter().map(|dscp| ("dscp", dscp.to_string()));
            let flows = class.flows.iter().map(|flow| ("flows", flow.clone()));
            for (list, value) in code_points.chain(flows) {
                if let Some(other) = selected.insert((list, value.clone()), name) {
                    self.refuse(
                        format!("{location}.{list}"),
                        format!("class `{other}` has {value} already"),
                        "remove it from one of the two lists",
                    );
                }
            }
            if let Some(rank) = class.priority
                && let Some(other) = ranks.insert(rank, name)
            {
                self.refuse(
                    format!("{location}.priority"),
                    format!("class `{other}` has priority {rank} already"),
                    "give each class with strict priority its own rank, or use `weight`",
                );
            }
        }
    }

    fn one_class_for_other_packets(&mut self, key: &str, scheduler: &Scheduler) {
        let others = scheduler.class.iter().filter(|(_, class)| class.takes_other_packets());
        let names: Vec<_> = others.map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [_] => {}
            [] => self.refuse(
                format!("{key}.class"),
                "no class gets the packets that the others do not select",
                "add a class without `dscp` and `flows`, such as class.other = {}",
            ),
            [first, second, ..] => self.refuse(
                format!("{key}.class.{second}"),
                format!("both `{first}` and `{second}` would get all other packets"),
                "give one of them `dscp` or `flows`",
            ),
        }
    }

    fn scheduler_class(&mut self, key: &str, class: &SchedulerClass) {
        if class.priority == Some(0) {
            self.refuse(
                format!("{key}.priority"),
                "the first rank is 1",
                "write 1 for the class that is served first",
            );
        }
        if class.priority.is_some() && class.weight.is_some() {
            self.refuse(
                format!("{key}.weight"),
                "a class with strict priority takes precedence over all weights",
                "remove `weight`, or remove `priority`; `rate` limits the class",
            );
        }
        if class.weight.is_some_and(|weight| weight == 0 || weight > WEIGHT_MAX) {
            self.refuse(
                format!("{key}.weight"),
                format!("a weight is a number from 1 to {WEIGHT_MAX}"),
                "write 2 for twice the share of a class without this key",
            );
        }
        if class.rate.is_some_and(|rate| rate.as_bits_per_sec() == 0) {
            self.refuse(
                format!("{key}.rate"),
                "the rate of a class must be above 0",
                "write \"100 kbit/s\", or leave it out for no limit",
            );
        }
        match (class.rate, class.burst) {
            (None, Some(_)) => self.refuse(
                format!("{key}.burst"),
                "a class without `rate` has no token bucket",
                "add `rate`, or remove `burst`",
            ),
            (Some(_), Some(burst)) if burst.get() == 0 => self.refuse(
                format!("{key}.burst"),
                "the burst size must be above 0",
                "write the size of one or two packets, such as \"3 kB\"",
            ),
            _ => {}
        }
        self.class_aqm(key, class);
    }

    fn class_aqm(&mut self, key: &str, class: &SchedulerClass) {
        match &class.aqm {
            Some(Aqm::Red(_) | Aqm::Pie(_)) => self.refuse(
                format!("{key}.aqm"),
                "RED and PIE decide on arrival from the time at which a packet will be \
                 transmitted, which a scheduler does not know",
                "use `codel` or `fq_codel`, or leave it out for drop-tail",
            ),
            Some(Aqm::Codel(codel)) => {
                self.codel(&format!("{key}.aqm.codel"), codel.target, codel.interval);
            }
            Some(Aqm::FqCodel(fq_codel)) => {
                self.fq_codel(&format!("{key}.aqm.fq_codel"), fq_codel);
            }
            None => {}
        }
    }

    /// Reports flows of classes that do not cross the direction: an error in a name or in a route.
    fn classes_have_traffic(
        &mut self,
        key: &str,
        scheduler: &Scheduler,
        hops: &[Hop],
        network: Option<&Network<'_>>,
    ) {
        for (class, keys) in &scheduler.class {
            for name in &keys.flows {
                let location = format!("{key}.class.{class}.flows");
                let Some(flow) = self.scenario.flow.get(name) else {
                    self.unknown(&location, "flow", name, &self.scenario.flow);
                    continue;
                };
                let Some(network) = network else { continue };
                // A flow without a path is reported elsewhere.
                let Ok(routes) = network.routes(name, flow) else { continue };
                if !routes.forward.iter().chain(&routes.reverse).any(|hop| hops.contains(hop)) {
                    self.refuse(
                        location,
                        format!("no packets of `{name}` cross this direction"),
                        "remove the name, or route the flow here with `route` or `reverse_route`",
                    );
                }
            }
        }
    }
}
