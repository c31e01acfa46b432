//! Which collectors a head accepts.

use gridhaul_core::coverage_mark::mark;

use super::Head;
use crate::protocol::Hello;

/// Largest number of shards of a collector.
const SHARDS_MAX: u16 = 256;

/// Largest number of collectors without `head.collectors`: without TLS, anybody can state names.
pub(super) const COLLECTORS_MAX: usize = 10_000;

impl Head {
    /// Whether the name of an epoch is lost by damage of the log: the next collector with this
    /// epoch, a random number, states it.
    pub(super) fn is_nameless(&self, epoch: u64) -> bool {
        self.state.sources.get(&epoch).is_some_and(|source| source.collector.is_empty())
    }

    /// Why a collector is refused, with the remedy.
    pub(super) fn refusal(&self, hello: &Hello<'_>) -> Option<String> {
        let allowed = &self.settings.collectors;
        if hello.collector.is_empty() {
            return Some("the collector has no name: set `name` in its configuration".to_owned());
        }
        if !allowed.is_empty() && !allowed.iter().any(|name| name == hello.collector) {
            return Some(format!(
                "collector {:?} is not in head.collectors: add it there, or correct `name` at the \
                 collector",
                hello.collector
            ));
        }
        if hello.replies && !self.settings.replies {
            return Some(
                "collector.replies is true and this head has no server that can reply: deliver to \
                 a TCP server, or set collector.replies = false"
                    .to_owned(),
            );
        }
        if hello.shard >= hello.shards || hello.shards > SHARDS_MAX {
            return Some(format!(
                "shard {} of {}: expected a number below the count, and at most {SHARDS_MAX} \
                 shards",
                hello.shard, hello.shards
            ));
        }
        if let Some(source) = self.state.sources.get(&hello.epoch) {
            return (source.collector != hello.collector && !source.collector.is_empty())
                .then(|| format!("the epoch belongs to collector {:?}", source.collector));
        }
        let sources = &self.state.sources;
        let is_new = || sources.values().all(|source| source.collector != hello.collector);
        if allowed.is_empty() && sources.len() >= COLLECTORS_MAX && is_new() {
            return Some(format!(
                "the head knows {COLLECTORS_MAX} collectors; list those that may connect in \
                 head.collectors"
            ));
        }
        // Two collectors with one name would end the streams of each other's meters in turn.
        let is_open = |epoch| {
            self.connections
                .values()
                .any(|known| known.source.is_some_and(|source| source.0 == epoch))
        };
        let mut sources = self.state.sources.iter();
        let is_other =
            sources.any(|(epoch, source)| source.collector == hello.collector && is_open(*epoch));
        mark!(head_refuses_a_second_collector_with_the_name if is_other);
        is_other.then(|| {
            "a collector with this name and another log is connected: give each collector a name \
             of its own; a collector that has \
             replaced it is accepted when its connection has ended, after at most a \
             minute"
                .to_owned()
        })
    }
}
