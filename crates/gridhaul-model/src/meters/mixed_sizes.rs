//! Messages of different sizes through the same aggregators.

use super::layout::Layout;
use crate::chain::meter::Demand;
use crate::fixed_point::DataSource;
use crate::model_rules::ModelRules;

impl Layout {
    /// The buffer of an aggregator counts bits with headers, its upstream connection those of the
    /// payload. The share of the payload is that of the flows together; a single one has its own.
    pub(super) fn average_payload_shares(&mut self) {
        if self.network.rules != ModelRules::Refined {
            return;
        }
        for (index, upstream) in self.upstream.iter().enumerate() {
            let source = &mut self.network.classes[upstream.class].source;
            let DataSource::Aggregator { region, .. } = source else { continue };
            if region.network.classes.len() < 2 {
                continue;
            }
            let (mut payload, mut all) = (0.0, 0.0);
            for flow in self.flows.iter().filter(|flow| flow.upstream == Some(index)) {
                let class = &region.network.classes[flow.class];
                let DataSource::Meter { demand, .. } = &class.source else { continue };
                let rate = class.senders * segments_per_s(demand);
                payload += rate * flow.sizes.payload;
                all += rate * flow.sizes.segment;
            }
            if all > 0.0 {
                region.payload_share = payload / all;
            }
        }
    }
}

/// Segments per second of a meter, or bursts per second, which have about as many segments.
fn segments_per_s(demand: &Demand) -> f64 {
    match *demand {
        Demand::Messages { per_second, segments } => per_second * f64::from(segments),
        Demand::Greedy { on, off } => 1.0 / (on + off),
    }
}
