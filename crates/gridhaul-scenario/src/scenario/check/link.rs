//! Checks of links.

use super::Report;
use crate::scenario::{
    Compression, Direction, GilbertElliott, Link, LoadLatency, Loss, PACKET_MAX, Scenario, suggest,
};
use crate::units::{Duration, Probability};

impl Report<'_> {
    pub(super) fn links(&mut self) {
        for (name, link) in &self.scenario.link {
            let key = format!("link.{name}");
            self.ends(&key, &link.from, &link.to);
            self.directions_given(&key, link);
            self.handover(&key, link);
            if let Some(medium) = &link.medium {
                self.medium_of_link(name, medium);
            }
            // The directions of an invalid power line have values that nobody has written.
            if let Some(line) = &link.power_line
                && !self.power_line(&format!("{key}.power_line"), line)
            {
                continue;
            }
            for (side, direction) in link.given() {
                let key = format!("{key}.{side}");
                self.direction(&key, name, side, direction);
                self.link_trace(&key, link, direction);
                self.link_quality(&key, link, direction);
                self.drx(&key, link, direction);
                self.radio(&key, link, direction);
            }
        }
    }

    fn directions_given(&mut self, key: &str, link: &Link) {
        let separate = [("forward", &link.forward), ("reverse", &link.reverse)];
        let extra = separate.iter().find(|(_, direction)| direction.is_some());
        match (&link.both, extra) {
            (None, None) => self.refuse(
                key,
                "the link has no direction",
                "add `both = { rate = \"1 Mbit/s\" }`, or `forward` and `reverse`, or `power_line`",
            ),
            (Some(_), Some((side, _))) => self.refuse(
                format!("{key}.{side}"),
                format!("the link has `both` and `{side}`"),
                "use either `both`, or `forward` and `reverse`",
            ),
            _ => {}
        }
    }

    fn direction(&mut self, key: &str, link: &str, side: &str, direction: &Direction) {
        if direction.rate.as_bits_per_sec() == 0 && !direction.has_measured_rate() {
            self.refuse(
                format!("{key}.rate"),
                "a direction needs a `rate` above 0",
                "write rate = \"3 Mbit/s\"; to make the link one-way, remove the direction",
            );
        }
        self.mtu(key, direction);
        self.rate_changes(key, direction);
        self.aqm(key, direction);
        if let Some(loss) = &direction.loss {
            self.loss(key, loss);
        }
        if let Some(shadowing) = &direction.shadowing {
            self.shadowing(&format!("{key}.shadowing"), shadowing);
        }
        for (index, noise) in direction.noise.iter().enumerate() {
            self.noise(&format!("{key}.noise[{index}]"), noise);
        }
        for (index, outage) in direction.outage.iter().enumerate() {
            let key = format!("{key}.outage[{index}]");
            if outage.length.is_zero() {
                self.refuse(
                    format!("{key}.length"),
                    "the length of an outage must be above 0",
                    "write \"5 s\", or remove the outage",
                );
            }
            if let Some(every) = outage.every
                && every <= outage.length
            {
                self.refuse(
                    format!("{key}.every"),
                    format!("the outage recurs every {every} but lasts {}", outage.length),
                    "`every` is the time from start to start: make it longer than `length`",
                );
            }
        }
        if direction.route_change.is_some_and(|change| change.every.is_zero()) {
            self.refuse(
                format!("{key}.route_change.every"),
                "the time between route changes must be above 0",
                "write \"1 s\", or remove the route change",
            );
        }
        if let Some(latency) = &direction.load_latency {
            self.load_latency(&format!("{key}.load_latency"), &format!("{link}.{side}"), latency);
        }
        if let Some(compression) = &direction.compression {
            self.compression(&format!("{key}.compression"), compression);
        }
    }

    fn compression(&mut self, key: &str, compression: &Compression) {
        let ratio = compression.payload_ratio;
        if !(ratio > 0.0 && ratio <= 1.0) {
            self.refuse(
                format!("{key}.payload_ratio"),
                format!("{ratio} is not a ratio above 0 and at most 1"),
                "write 0.5 for half the size, or leave it out",
            );
        }
        if compression.header.get() == 0 {
            self.refuse(
                format!("{key}.header"),
                "a packet needs at least 1 B on the link",
                "write the size of a compressed header, such as \"5 B\"",
            );
        }
        if compression.compressible.get() == 0 {
            self.refuse(
                format!("{key}.compressible"),
                "a packet begins with headers",
                "write \"40 B\" for IPv4 and TCP, or leave it out",
            );
        }
        let sizes = [
            ("header", compression.header),
            ("compressible", compression.compressible),
            ("overhead", compression.overhead),
        ];
        for (name, bytes) in sizes {
            if bytes > PACKET_MAX {
                self.refuse(
                    format!("{key}.{name}"),
                    format!("{bytes} is more than the largest packet, {PACKET_MAX}"),
                    "write a size such as \"22 B\"",
                );
            }
        }
    }

    fn loss(&mut self, key: &str, loss: &Loss) {
        match loss {
            Loss::GilbertElliott(channel) => {
                self.gilbert_elliott(&format!("{key}.loss.gilbert_elliott"), channel);
            }
            Loss::Packets(packets) => {
                if let Some(index) = packets.iter().position(|packet| *packet == 0) {
                    self.refuse(
                        format!("{key}.loss.packets[{index}]"),
                        "packets are counted from 1",
                        "write 1 for the first packet",
                    );
                }
            }
            Loss::Bernoulli(_) => {}
        }
    }

    fn gilbert_elliott(&mut self, key: &str, channel: &GilbertElliott) {
        let GilbertElliott { mean_good, mean_bad, good_to_bad, bad_to_good, .. } = *channel;
        let in_time = [mean_good, mean_bad].iter().flatten().count();
        let per_packet = [good_to_bad, bad_to_good].iter().flatten().count();
        if (in_time, per_packet) != (2, 0) && (in_time, per_packet) != (0, 2) {
            self.refuse(
                key,
                "expected either `mean_good` and `mean_bad`, or `good_to_bad` and `bad_to_good`",
                "write mean_good = \"10 s\" and mean_bad = \"200 ms\" for bursts in time, as on a \
                 radio link",
            );
            return;
        }
        for (name, mean) in [("mean_good", mean_good), ("mean_bad", mean_bad)] {
            if mean.is_some_and(Duration::is_zero) {
                self.refuse(
                    format!("{key}.{name}"),
                    "the mean duration of a state must be above 0",
                    "write a time such as \"200 ms\", or use `bernoulli` for a single loss \
                     probability",
                );
            }
        }
        if good_to_bad == Some(Probability::ZERO) && bad_to_good == Some(Probability::ZERO) {
            self.refuse(
                key,
                "`good_to_bad` and `bad_to_good` are both 0: the state never changes",
                "set the transition probabilities, or use `bernoulli` for a single loss \
                 probability",
            );
        }
    }

    fn load_latency(&mut self, key: &str, own: &str, latency: &LoadLatency) {
        if latency.critical.as_bits_per_sec() == 0 {
            self.refuse(
                format!("{key}.critical"),
                "the critical throughput must be above 0",
                "write \"10 kbit/s\", or leave it out",
            );
        }
        if latency.memory.is_zero() {
            self.refuse(
                format!("{key}.memory"),
                "the averaging time must be above 0",
                "write \"5 s\", or leave it out",
            );
        }
        if latency.period.is_zero() {
            self.refuse(
                format!("{key}.period"),
                "the period of the oscillation must be above 0",
                "write \"20 s\", or leave it out; for no oscillation write oscillation = \"0 s\"",
            );
        }
        if latency.idle > latency.stationary {
            self.refuse(
                format!("{key}.idle"),
                format!(
                    "the latency without load ({}) is above the latency under load ({})",
                    latency.idle, latency.stationary
                ),
                "reduce `idle` to at most `stationary`",
            );
        }
        let Some(paired) = &latency.paired_with else { return };
        let is_own_side = |side: &str| {
            own.strip_suffix(".both").is_some_and(|link| *paired == format!("{link}.{side}"))
        };
        if is_own_side("forward") || is_own_side("reverse") {
            // The keys of `both` are those of each direction, also of the named one.
            self.refuse(
                format!("{key}.paired_with"),
                format!("`both` pairs {paired:?} with itself"),
                "write `forward` and `reverse` instead of `both`, and name the opposite direction \
                 in each",
            );
        } else if paired == own {
            self.refuse(
                format!("{key}.paired_with"),
                "a direction cannot be paired with itself",
                "name the opposite direction",
            );
        } else if !is_direction(self.scenario, paired) && !self.is_full() {
            let directions = directions(self.scenario);
            let known: Vec<_> = directions.iter().map(String::as_str).collect();
            self.refuse(
                format!("{key}.paired_with"),
                format!("{paired:?} is not a direction of a link"),
                suggest::remedy(paired, &known),
            );
        }
    }
}

fn is_direction(scenario: &Scenario, name: &str) -> bool {
    let Some((link, side)) = name.rsplit_once('.') else { return false };
    scenario.link.get(link).is_some_and(|link| match side {
        "forward" => link.forward().is_some(),
        "reverse" => link.reverse().is_some(),
        _ => false,
    })
}

/// All directions as `<link>.forward` and `<link>.reverse`.
fn directions(scenario: &Scenario) -> Vec<String> {
    let mut names = Vec::new();
    for (name, link) in &scenario.link {
        if link.forward().is_some() {
            names.push(format!("{name}.forward"));
        }
        if link.reverse().is_some() {
            names.push(format!("{name}.reverse"));
        }
    }
    names
}
