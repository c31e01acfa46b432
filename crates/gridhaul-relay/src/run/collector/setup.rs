//! Start of a collector.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Collector, DurabilityTier};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;

use super::super::committer::Committer;
use super::super::log_folder::{open_log, random};
use super::super::management::Questions;
use super::super::poll::{Poll, Token, Waker};
use super::super::upstream::Upstream;
use super::super::{RunError, listener};
use super::meters::QUANTUM;
use super::{Counters, Loop, MeterAddress};
use crate::aggregate::{Aggregate, CollectorState, Settings, Tier, recover};
use crate::config::framing_of;

/// Files that are not connections of meters: log, upstreams, listeners, status page.
const RESERVED_FILES: u64 = 256;

impl Loop {
    pub(super) fn new(
        config: &RelayConfig,
        collector: &Collector,
        folder: &Path,
        waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let settings = settings(config, collector);
        let poll = Poll::new()?;
        poll.add(&*waker, Token::Wake, EventFlags::IN)
            .map_err(gridhaul_linux::Error::call("watching the threads"))?;
        let (aggregate, committer) = match &config.log {
            Some(log) => {
                let opened = open_log(log, folder)?;
                let writer = opened.writer;
                let storage = writer.storage().clone();
                let (epoch, range) = (writer.epoch(), (writer.start(), writer.end()));
                let state =
                    recover(storage.clone(), epoch, &opened.snapshot, range, collector.shards)?;
                let log = Some((storage, range.0, range.1));
                let aggregate = Aggregate::new(settings, epoch, &state, log);
                (aggregate, Some(Committer::start(writer, Arc::clone(&waker))))
            }
            None => (Aggregate::new(settings, random(), &CollectorState::default(), None), None),
        };
        let mut listeners = Vec::new();
        for (name, address) in &collector.listener {
            let key = format!("aggregate.listener.{name}.address");
            let socket = listener::listen(&key, &address.address)?;
            let token = Token::Listener(listeners.len() as u32);
            poll.add(&socket, token, EventFlags::IN | EventFlags::ET)
                .map_err(gridhaul_linux::Error::call("watching a listener"))?;
            let (framing, idle_gap) = framing_of(&address.framing);
            let name = name.clone();
            listeners.push(MeterAddress { name, socket, framing, idle_gap, is_ready: false });
        }
        // The lock of the log has excluded a second process, whose address would be in use.
        let questions = Questions::serve(config.management.as_ref(), &waker)?;
        let control = collector.congestion_control.as_deref();
        let upstream = |shard| Upstream::new(shard, &collector.upstream, control);
        let open_files = gridhaul_linux::raise_open_file_limit().saturating_sub(RESERVED_FILES);
        let meters_max =
            collector.meters.map_or(open_files, |meters| open_files.min(meters.into()));
        let upstreams = (0..aggregate.shard_count()).map(upstream).collect();
        Ok(Self {
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            aggregate,
            committer,
            listeners,
            upstreams,
            sockets: Vec::new(),
            ready: VecDeque::new(),
            receive_buffer: collector.receive_buffer.get() as u32,
            meters_max: meters_max as usize,
            batch_delay: collector.batch_delay,
            flush_at: Instant::NEVER,
            trimmed: 0,
            idle_gaps: VecDeque::new(),
            buffer: vec![0; QUANTUM],
            counters: Counters::default(),
            unconfirmed: VecDeque::new(),
            next_report: Instant::ZERO,
            questions,
        })
    }
}

fn settings(config: &RelayConfig, collector: &Collector) -> Settings {
    let tier = match collector.tier {
        DurabilityTier::Memory => Tier::Memory,
        DurabilityTier::Local => Tier::Local,
        DurabilityTier::Server => Tier::Server,
    };
    let (backlog, segment) = match &config.log {
        Some(log) => (log.limit.get(), log.segment.get()),
        None => (collector.memory.get(), u64::MAX),
    };
    Settings {
        name: config.name.clone(),
        tier,
        shards: collector.shards,
        at_risk: collector.bytes_at_risk.get(),
        at_risk_per_meter: collector.bytes_at_risk_per_meter.get(),
        backlog,
        segment,
        // A head delivers to files, which send nothing.
        replies: false,
    }
}
