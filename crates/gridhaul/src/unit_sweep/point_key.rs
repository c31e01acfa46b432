//! Keys of results: a result is valid if the key of its point has not changed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use gridhaul_scenario::scenario::{Link, Load, Scenario};
use sha2::{Digest, Sha256};

/// Version of the program and, in a build from the repository, a hash of the sources of the
/// simulator: results of an older simulator are not valid.
pub(super) const PROGRAM: &str = env!("GRIDHAUL_SIMULATOR");

/// Identifies everything that determines the results of a point: resolved scenario, traces, program
/// and backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PointKey([u8; 16]);

/// Computes keys. The contents of a trace are hashed once.
#[derive(Debug, Default)]
pub(super) struct PointKeys {
    traces: Mutex<BTreeMap<PathBuf, String>>,
}

impl PointKeys {
    /// The key of a point of the simulator.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub(super) fn of(&self, scenario: &Scenario) -> anyhow::Result<PointKey> {
        let mut context = format!("sim\n{PROGRAM}\n");
        let folder = Path::new(scenario.folder.as_deref().unwrap_or_default());
        let flows = scenario.flow.values().filter_map(|flow| match &flow.load {
            Load::Trace(trace) => Some(trace.file.as_str()),
            _ => None,
        });
        let directions = scenario.link.values().flat_map(Link::given);
        let links = directions.flat_map(|(_, direction)| direction.files());
        for file in flows.chain(links) {
            context += &self.trace(&folder.join(file))?;
            context.push('\n');
        }
        let digest = scenario.results_sha256(&context);
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Ok(PointKey(key))
    }

    fn trace(&self, path: &Path) -> anyhow::Result<String> {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = traces.get(path) {
            return Ok(known.clone());
        }
        let digest =
            sha256(path).with_context(|| format!("cannot read the trace {}", path.display()))?;
        traces.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(hexadecimal(&hash.finalize()));
        }
        hash.update(&chunk[..length]);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for PointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl FromStr for PointKey {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut key = [0; 16];
        if text.len() != 2 * key.len() || !text.is_ascii() {
            return Err(());
        }
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| ())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| ())?;
        }
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back() {
        let key = PointKey([0x0f; 16]);
        assert_eq!(key.to_string().parse(), Ok(key));
        for text in ["", "0f", &"g".repeat(32), &"é".repeat(16)] {
            assert!(text.parse::<PointKey>().is_err(), "{text}");
        }
    }
}
