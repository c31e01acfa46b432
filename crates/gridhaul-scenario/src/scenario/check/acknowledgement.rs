//! Checks of acknowledgements by applications.

use super::Report;
use crate::scenario::{ConnectionPolicy, Flow};

/// Largest number of retransmissions: more are a typing error.
const RETRANSMISSIONS_MAX: u32 = 1_000;

/// Largest window: more messages than a device stores are a typing error.
const WINDOW_MAX: u32 = 65_535;

impl Report<'_> {
    /// Checks the acknowledgements of a flow over TCP.
    pub(super) fn acknowledgement(&mut self, key: &str, flow: &Flow) {
        let Some(keys) = flow.acknowledgement else { return };
        let key = format!("{key}.acknowledgement");
        if flow.load.is_two_way() {
            self.refuse(
                key.as_str(),
                "the receiver of this load answers already",
                "use `periodic`, `poisson`, `burst`, `application`, or `on_off` with a rate; or \
                 remove this key",
            );
        }
        self.some_size(&format!("{key}.size"), keys.size);
        self.some_time(&format!("{key}.timeout"), keys.timeout);
        if keys.retransmissions > RETRANSMISSIONS_MAX {
            self.refuse(
                format!("{key}.retransmissions"),
                format!("expected a number from 0 to {RETRANSMISSIONS_MAX}"),
                "write 4, or leave it out",
            );
        }
        if !(1..=WINDOW_MAX).contains(&keys.window) {
            self.refuse(
                format!("{key}.window"),
                format!("expected a number from 1 to {WINDOW_MAX}"),
                "write 1, or leave it out",
            );
        }
        if flow.connection == ConnectionPolicy::PerMessage && keys.window > 1 {
            self.refuse(
                format!("{key}.window"),
                "a connection for each message carries one message at a time",
                "leave this key out, or use connection = \"persistent\" or an idle timeout",
            );
        }
    }
}
