//! Status of a hybrid router.

use gridhaul_core::router::{Failure, LinkState};
use gridhaul_scenario::units::Instant;
use serde_json::{Map, Value, json};

use super::Loop;

impl Loop {
    /// The document of a path.
    pub(super) fn document(&self, now: Instant, path: &str) -> Value {
        if path == "/details" {
            return json!({ "links": self.link_list(now), "classes": self.class_list() });
        }
        let counters = self.machine.counters();
        let links = self.router().link.keys().enumerate();
        // A metric without a value has no line.
        let of_links = |value: &dyn Fn(usize) -> Option<Value>| -> Map<String, Value> {
            let known = links.clone();
            known.filter_map(|(number, name)| Some((name.clone(), value(number)?))).collect()
        };
        let is_usable = |link: usize| self.machine.state(link) == LinkState::Usable;
        let round_trip = |link: usize| self.machine.round_trip(link).map(|time| time.as_secs_f64());
        let failed = links
            .clone()
            .filter(|(number, _)| !is_usable(*number))
            .map(|(number, name)| format!("{name}: {}", words(self.machine.state(number))));
        let failed: Vec<_> = failed.collect();
        let peer_error = "no probe of the peer arrives: links are selected by carrier alone";
        json!({
            "role": "hybrid router",
            "name": self.state.config.name,
            "links_count": self.sockets.len(),
            "links_usable_count": self.sockets.len() - failed.len(),
            "link_usable_count": of_links(&|link| Some(u8::from(is_usable(link)).into())),
            "link_round_trip_s": of_links(&|link| Some(round_trip(link)?.into())),
            "link_error": (!failed.is_empty()).then(|| failed.join("; ")),
            "peer_error": (!self.machine.peer_is_known(now)).then_some(peer_error),
            "switches_count": counters.switches,
            "suspicions_count": counters.suspicions,
            "refuted_suspicions_count": counters.refuted_suspicions,
            "refused_probes_count": counters.refused_probes,
        })
    }

    fn link_list(&self, now: Instant) -> Vec<Value> {
        let links = self.router().link.iter().enumerate();
        links
            .map(|(number, (name, link))| {
                let since = match self.machine.state(number) {
                    LinkState::Holding(since) => Some(now.since(since).as_secs_f64()),
                    LinkState::Usable | LinkState::Suspected | LinkState::Failed(_) => None,
                };
                json!({
                    "link": name,
                    "device": link.device,
                    "state": words(self.machine.state(number)),
                    "hold_age_s": since,
                    "round_trip_s":
                        self.machine.round_trip(number).map(|time| time.as_secs_f64()),
                    "silence_limit_s": self.machine.silence_limit(number).as_secs_f64(),
                })
            })
            .collect()
    }

    fn class_list(&self) -> Vec<Value> {
        let router = self.router();
        let names = router.class.keys().map(|name| Some(name.as_str())).chain([None]);
        names
            .enumerate()
            .map(|(class, name)| {
                let link = router.link.get_index(self.machine.selected(class));
                json!({ "class": name, "link": link.map(|(name, _)| name) })
            })
            .collect()
    }
}

/// State of a link in words.
pub(super) const fn words(state: LinkState) -> &'static str {
    match state {
        LinkState::Usable => "usable",
        LinkState::Suspected => "several probes do not arrive at the peer",
        LinkState::Holding(_) => "answers again, and is held back",
        LinkState::Failed(Failure::NoCarrier) => "no carrier",
        LinkState::Failed(Failure::PeerWithoutCarrier) => "no carrier at the peer",
        LinkState::Failed(Failure::LargePackets) => "large packets do not arrive at the peer",
        LinkState::Failed(Failure::UnknownToPeer) => "the peer has no link of this name",
        LinkState::Failed(Failure::Silence) => "packets do not arrive at the peer",
    }
}
