//! Status of a head.

use serde_json::{Value, json};

use super::Loop;

impl Loop {
    /// The status document.
    pub(super) fn status(&self) -> Value {
        let unconfirmed = self.destination.unconfirmed();
        let progress = self.destination.progress();
        let collectors = self.head.collectors();
        let by_name = |number: fn(&(usize, usize)) -> usize| -> serde_json::Map<String, Value> {
            let all = collectors.iter();
            all.map(|(name, counts)| ((*name).to_owned(), number(counts).into())).collect()
        };
        json!({
            "role": "head",
            "name": self.state.config.name,
            "collectors_connected_count": self.links.iter().flatten().count(),
            "meters_count": self.head.state().meter_count(),
            "log_end_byte": self.log_end,
            "delivered_byte": self.delivered,
            "server_unconfirmed_byte": unconfirmed.map(|data| data.bytes),
            "server_at_risk_byte": unconfirmed.map(|data| data.at_risk),
            "collector_connections_count": by_name(|count| count.0),
            "collector_meters_count": by_name(|count| count.1),
            "delivery_error": progress.delivery_error(),
            "delivery_error_age_s": progress.delivery_error_age(),
            "oldest_record_age_s": self.undelivered.oldest(self.clock.now()),
            "backlog_max_byte": self.backlog_max,
            "backlog_byte": self.log_end - self.delivered.min(self.log_end),
            "log_gaps_count": self.losses.log.gaps,
            "log_lost_byte": self.losses.log.bytes,
            "log_error": self.committer.error(),
            "collector_gaps_count": self.losses.gaps,
            "collector_lost_byte": self.losses.bytes,
            "lost_records_count": self.losses.records,
        })
    }
}
