//! Checks of loads.

use super::Report;
use crate::scenario::{Application, Burst, Load};
use crate::units::{BitRate, Bytes, Duration};

/// Smallest share of members that an event affects: with a smaller share, the search for the next
/// report of a member would skip too many events.
const SHARE_MIN: f64 = 0.0001;

impl Report<'_> {
    pub(super) fn load(&mut self, key: &str, load: &Load) {
        match load {
            Load::Bulk | Load::External => {}
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
            Load::Trace(load) if load.file.trim().is_empty() => self.refuse(
                format!("{key}.trace.file"),
                "the file name is empty",
                "name a CSV or Parquet file, such as \"readings.csv\"",
            ),
            Load::Trace(_) => {}
            Load::Burst(load) => self.burst(&format!("{key}.burst"), load),
            Load::Application(load) => self.application(&format!("{key}.application"), load),
            Load::RequestResponse(load) => {
                self.some_size(&format!("{key}.request_response.request"), load.request);
                self.some_size(&format!("{key}.request_response.response"), load.response);
            }
            Load::Exchange(load) => self.exchange(&format!("{key}.exchange"), load),
            Load::Modbus(load) => self.modbus(&format!("{key}.modbus"), load),
            Load::Dlms(load) => {
                self.some_size(&format!("{key}.dlms.data"), load.data);
                self.some_time(&format!("{key}.dlms.every"), load.every);
            }
            Load::Iec104(load) => self.iec_104(&format!("{key}.iec_104"), load),
            Load::Mqtt(load) => self.mqtt(&format!("{key}.mqtt"), load),
            Load::MqttSubscription(load) => {
                self.mqtt_subscription(&format!("{key}.mqtt_subscription"), load);
            }
        }
    }

    fn burst(&mut self, key: &str, load: &Burst) {
        self.some_size(&format!("{key}.size"), load.size);
        if load.count == 0 {
            self.refuse(
                format!("{key}.count"),
                "an affected member sends at least one message",
                "write 1, or leave it out",
            );
        }
        if load.share.ratio() < SHARE_MIN {
            self.refuse(
                format!("{key}.share"),
                "the share is too small: hardly any member would be affected",
                "write a share from \"0.01 %\" to \"100 %\", or leave it out",
            );
        }
        let Some(every) = load.every else { return };
        let gaps = u64::from(load.count.saturating_sub(1));
        let length =
            load.gap.as_nanos().saturating_mul(gaps).saturating_add(load.spread.as_nanos());
        if every.as_nanos() <= length {
            let length = Duration::from_nanos(length);
            self.refuse(
                format!("{key}.every"),
                format!("the event recurs every {every}, but its reports take up to {length}"),
                "increase `every`, or reduce `spread`, `count` or `gap`",
            );
        }
    }

    fn application(&mut self, key: &str, load: &Application) {
        if let Some(size) = load.size {
            self.some_size(&format!("{key}.size"), size);
        }
        let [minimum, maximum] = load.profile.periods();
        if let Some(every) = load.every.filter(|every| *every < minimum || *every > maximum) {
            self.refuse(
                format!("{key}.every"),
                format!("this profile sends every {minimum} to {maximum}, not every {every}"),
                "choose a time in this range, or use `periodic` for other times",
            );
        }
    }

    pub(super) fn some_size(&mut self, key: &str, size: Bytes) {
        if size.get() == 0 {
            self.refuse(key, "a message or transfer has at least one byte", "write \"240 B\"");
        }
    }

    pub(super) fn some_time(&mut self, key: &str, time: Duration) {
        if time.is_zero() {
            self.refuse(key, "this time must be above 0", "write \"15 min\" or \"1 s\"");
        }
    }

    fn some_rate(&mut self, key: &str, rate: BitRate) {
        if rate.as_bits_per_sec() == 0 {
            self.refuse(key, "the rate of a burst must be above 0", "write \"64 kbit/s\"");
        }
    }
}
