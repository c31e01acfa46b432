//! Crates that run in a browser too, which has neither threads nor processes, and whose clock the
//! answers must not depend on.

use crate::repository::root;
use crate::source::modules;

/// The backends of the explorer without a server, and what they need.
const CRATES: [&str; 8] = [
    "gridhaul-capture",
    "gridhaul-core",
    "gridhaul-data",
    "gridhaul-explore",
    "gridhaul-model",
    "gridhaul-report",
    "gridhaul-scenario",
    "gridhaul-sim",
];

/// A module that a browser does not have: `gridhaul-explore` without the feature `server`.
const SERVER: &str = "server";

const FORBIDDEN: [&str; 6] =
    ["std::time", "thread::spawn", "thread::scope", "thread::Builder", "std::process", "std::os"];

/// A line that is compiled for Unix only.
const FOR_UNIX: &str = "#[cfg(unix)]\n";

fn violations(code: &str) -> Vec<&'static str> {
    let code: String = code.split(FOR_UNIX).enumerate().map(portable_part).collect();
    FORBIDDEN.into_iter().filter(|word| code.contains(word)).collect()
}

/// A part of the code without the line after [`FOR_UNIX`].
fn portable_part((index, part): (usize, &str)) -> &str {
    if index == 0 { part } else { part.split_once('\n').map_or("", |(_, rest)| rest) }
}

#[test]
fn crates_that_run_in_a_browser_use_no_clock_thread_or_process() {
    for name in CRATES {
        for (path, code) in modules(&root().join("crates").join(name).join("src")) {
            let is_server = name == "gridhaul-explore" && path == [SERVER];
            let found = if is_server { Vec::new() } else { violations(&code) };
            assert!(found.is_empty(), "{name}, {}: {}", path.join("::"), found.join(", "));
        }
    }
}

#[test]
fn a_clock_is_found_and_a_line_for_unix_is_permitted() {
    assert_eq!(violations("use std::time::Instant;\n"), ["std::time"]);
    let for_unix = "#[cfg(unix)]\nuse std::os::unix::fs::FileExt;\nuse std::fs;\n";
    assert_eq!(violations(for_unix), [""; 0]);
}
