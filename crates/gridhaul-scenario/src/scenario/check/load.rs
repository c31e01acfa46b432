//! Contradictions in loads.

use super::Report;
use crate::scenario::Load;
use crate::units::{BitRate, Bytes, Duration};

impl Report<'_> {
    pub(super) fn load(&mut self, key: &str, load: &Load) {
        match load {
            Load::Bulk => {}
            Load::Transfer(load) => self.some_size(&format!("{key}.transfer.size"), load.size),
            Load::Periodic(load) => {
                self.some_size(&format!("{key}.periodic.size"), load.size);
                self.some_time(&format!("{key}.periodic.every"), load.every);
            }
            Load::Poisson(load) => {
                self.some_size(&format!("{key}.poisson.size"), load.size);
                self.some_time(&format!("{key}.poisson.every"), load.every);
            }
            Load::OnOff(load) => {
                self.some_size(&format!("{key}.on_off.size"), load.size);
                self.some_time(&format!("{key}.on_off.on"), load.on);
                self.some_time(&format!("{key}.on_off.off"), load.off);
                if let Some(rate) = load.rate {
                    self.some_rate(&format!("{key}.on_off.rate"), rate);
                }
            }
            Load::RequestResponse(load) => {
                self.some_size(&format!("{key}.request_response.request"), load.request);
                self.some_size(&format!("{key}.request_response.response"), load.response);
            }
        }
    }

    fn some_size(&mut self, key: &str, size: Bytes) {
        if size.get() == 0 {
            self.refuse(key, "a message or transfer has at least one byte", "write \"240 B\"");
        }
    }

    fn some_time(&mut self, key: &str, time: Duration) {
        if time.is_zero() {
            self.refuse(
                key,
                "this time must be longer than nothing",
                "write \"15 min\" or \"1 s\"",
            );
        }
    }

    fn some_rate(&mut self, key: &str, rate: BitRate) {
        if rate.as_bits_per_sec() == 0 {
            self.refuse(key, "the rate of a burst must be above 0", "write \"64 kbit/s\"");
        }
    }
}
