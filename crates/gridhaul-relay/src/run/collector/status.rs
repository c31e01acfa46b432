//! Status of a collector.

use serde_json::{Value, json};

use super::super::management::Question;
use super::Loop;
use crate::protocol::ResetCause;

impl Loop {
    pub(super) fn answer(&self, question: &Question) -> Value {
        let aggregate = &self.aggregate;
        match question.path() {
            "/meters" => {
                let meters: Vec<Value> = aggregate
                    .meters()
                    .map(|meter| {
                        json!({
                            "meter": meter.number,
                            "received_byte": meter.received,
                            "durable_byte": meter.durable,
                            "is_ended": meter.is_ended,
                        })
                    })
                    .collect();
                json!({ "epoch": format!("{:016x}", aggregate.epoch()), "meters": meters })
            }
            _ => self.status(),
        }
    }

    fn status(&self) -> Value {
        let aggregate = &self.aggregate;
        let causes = ResetCause::ALL.iter();
        let resets: serde_json::Map<String, Value> = causes
            .map(|cause| (cause.name().to_owned(), self.counters.resets[*cause as usize].into()))
            .collect();
        let connected = self.upstreams.iter().filter(|upstream| upstream.is_connected()).count();
        let reconnections: u64 = self.upstreams.iter().map(|upstream| upstream.reconnections).sum();
        json!({
            "role": "collector",
            "name": aggregate.settings().name,
            "tier": aggregate.settings().tier.name(),
            "meters_count": aggregate.meter_count(),
            "meters_max_count": self.meters_max,
            "accepted_count": self.counters.accepted,
            "refused_count": self.counters.refused,
            "received_byte": self.counters.received,
            "bytes_at_risk_byte": aggregate.bytes_at_risk(),
            "receive_buffer_byte": self.receive_buffer,
            "backlog_byte": aggregate.backlog_size(),
            "backlog_max_byte": aggregate.settings().backlog,
            "oldest_record_age_s": self.oldest_record_age(),
            "upstreams_count": self.upstreams.len(),
            "upstreams_connected_count": connected,
            "upstream_failures_count": reconnections,
            "resets_count": resets,
        })
    }

    /// Age of the oldest record in the log that the head has not confirmed, in seconds; `None` without a log.
    fn oldest_record_age(&self) -> Option<f64> {
        self.committer.as_ref()?;
        let oldest = self.unconfirmed.front();
        Some(oldest.map_or(0.0, |(at, _)| self.clock.now().since(*at).as_secs_f64()))
    }
}
