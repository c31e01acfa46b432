//! Test utilities of several crates: checks for optional tools, scenarios of links with known
//! results, a scenario with a chain of proxies, connections through such a chain, random numbers,
//! free addresses, suspended processes, programs that a test makes.
//!
//! Tools are programs, devices and permissions that a machine may lack. A test without its tools is
//! skipped, except where all tools are required, as in CI.

#![forbid(unsafe_code)]

mod address;
pub mod golden;
mod link_cases;
mod numbers;
mod programs;
mod proxy_chain;
mod proxy_schedule;
mod stopped;

use std::env;
use std::path::{Path, PathBuf};

pub use address::{ReservedPort, close, free_address, listen};
pub use link_cases::{ExpectedValue, LinkCase};
pub use numbers::Numbers;
pub use programs::{copy_program, write_script};
pub use proxy_chain::ProxyChain;
pub use proxy_schedule::{CloseTime, HostSchedule, ProxySchedule};
pub use stopped::wait_until_stopped;

/// Environment variable with which a missing tool is an error. `cargo xtask test` sets it in CI.
const REQUIRE_TOOLS: &str = "GRIDHAUL_REQUIRE_TOOLS";

/// Folders with programs that the PATH of a user may lack.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/rabbitmq/bin"];

/// Whether a missing tool is an error.
#[must_use]
pub fn tools_are_required() -> bool {
    env::var_os(REQUIRE_TOOLS).is_some()
}

/// Whether a test has a tool, as `found` states. Without it the caller skips the test, which is
/// printed.
///
/// # Panics
/// The tool is missing, and all tools are required.
#[must_use]
pub fn has_tool(found: bool, tool: &str) -> bool {
    assert!(found || !tools_are_required(), "{tool} is required and missing");
    if !found {
        eprintln!("skipped: {tool} is missing");
    }
    found
}

/// Whether a test has a file or a device; see [`has_tool`].
///
/// # Panics
/// The file does not exist, and all tools are required.
#[must_use]
pub fn has_file(path: &str) -> bool {
    has_tool(Path::new(path).exists(), path)
}

/// Whether a test has a program; see [`has_tool`].
///
/// # Panics
/// The program is not installed, and all tools are required.
#[must_use]
pub fn has_program(name: &str) -> bool {
    find_program(name).is_some()
}

/// The path of a program that a test needs; see [`has_tool`].
///
/// # Panics
/// The program is not installed, and all tools are required.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let found = installed(name);
    let _ = has_tool(found.is_some(), name);
    found
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name() {
        assert!(installed("sh").is_some());
        assert_eq!(installed("gridhaul-no-such-program"), None);
        assert_eq!(installed(""), None, "a folder is no program");
    }
}
