//! A collector and a head as processes.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use gridhaul_relay::daemon::query;
use serde_json::Value;

use crate::proxies::{free_address, is_listening, wait_until};
use crate::relay;

pub(crate) struct Aggregation {
    pub meters: SocketAddr,
    management: SocketAddr,
    pub collector: Child,
    pub head: Option<Child>,
    pub folder: tempfile::TempDir,
}

/// Differences from the usual configuration.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options<'a> {
    /// Further keys of the collector.
    pub keys: &'a str,
    /// Further keys of its listener.
    pub listener: &'a str,
    /// Destination of the head instead of a file.
    pub deliver: Option<&'a str>,
    /// Whether the head is unreachable.
    pub without_head: bool,
    /// Whether fdatasync(2) of both programs takes at least 4 ms.
    pub has_slow_disk: bool,
}

impl Aggregation {
    /// Starts a collector and, unless the head is to be unreachable, a head.
    pub(crate) fn start(tier: &str, options: Options<'_>) -> Self {
        let Options { keys, listener, deliver, without_head, has_slow_disk } = options;
        let folder = tempfile::tempdir().unwrap();
        let [meters, upstream, management] = [(); 3].map(|()| free_address());
        let log = if tier == "local" { "log.folder = \"collector-log\"" } else { "" };
        let collector = format!(
            "name = \"collector\"\nmanagement.address \
             = \"{management}\"\n{log}\n[collector]\ntier = \"{tier}\"\n\
             upstream = \"{upstream}\"\n{keys}\n[collector.listener.meters]\naddress \
             = \"{meters}\"\n{listener}\n"
        );
        let deliver = deliver.unwrap_or("deliver.file = \"messages.jsonl\"");
        let head = format!(
            "name = \"head\"\nlog.folder = \"head-log\"\n[head]\naddress \
             = \"{upstream}\"\n{deliver}\n"
        );
        let start = |name: &str, text: String, address| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            let mut command = Command::new(relay());
            command.arg("run").arg(&file).stdin(Stdio::null()).stderr(Stdio::null());
            if has_slow_disk {
                let library = std::env::var_os("GRIDHAUL_SLOW_DISK");
                command.env("LD_PRELOAD", library.expect("GRIDHAUL_SLOW_DISK is a library"));
            }
            let child = command.spawn().unwrap();
            wait_until("a relay listens", || is_listening(address));
            child
        };
        let head = (!without_head).then(|| start("head.toml", head, upstream));
        let collector = start("collector.toml", collector, meters);
        let aggregation = Self { meters, management, collector, head, folder };
        if !without_head {
            aggregation.wait("upstreams_connected_count", 1);
        }
        aggregation
    }

    pub(crate) fn status(&self) -> Value {
        let text = query(&self.management.to_string(), "/status").unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until a number of the status has this value.
    pub(crate) fn wait(&self, key: &str, value: u64) {
        wait_until(&format!("{key} is {value}"), || self.status()[key] == value);
    }
}

impl Drop for Aggregation {
    fn drop(&mut self) {
        for child in self.head.iter_mut().chain([&mut self.collector]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
