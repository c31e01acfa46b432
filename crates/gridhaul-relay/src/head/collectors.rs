//! Collectors of a head, for its status.

use std::collections::BTreeMap;

use super::machine::Head;

impl Head {
    /// Number of connections and of open meters of each collector that has records in the log, or
    /// that may connect.
    #[must_use]
    pub fn collectors(&self) -> BTreeMap<&str, (usize, usize)> {
        let names = self.settings.collectors.iter().map(|name| (&**name, (0, 0)));
        let mut found: BTreeMap<&str, (usize, usize)> = names.collect();
        for source in self.state.sources.values() {
            found.entry(&source.collector).or_default().1 += source.meters.len();
        }
        for (epoch, _) in self.connections.values().filter_map(|connection| connection.source) {
            if let Some(source) = self.state.sources.get(&epoch) {
                found.entry(&source.collector).or_default().0 += 1;
            }
        }
        found
    }
}
