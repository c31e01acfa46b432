//! `--version --verbose`: facts about a program that a report of a defect needs.

use std::env;
use std::ffi::OsStr;
use std::fs;

use clap::Command;
use clap::error::ErrorKind;

use crate::output::{print, say};

/// The commit that the program was built from. `cargo xtask dist` and `cargo xtask wheel` state it
/// in an environment variable: a build script that reads it from git would link the programs again
/// after each commit.
const COMMIT: Option<&str> = option_env!("GRIDHAUL_COMMIT");

/// Whether the arguments of a program, of which the first one is its name, are `--version` and
/// `--verbose`.
#[must_use]
pub fn requests_build_report<S: AsRef<OsStr>>(arguments: &[S]) -> bool {
    let has = |names: &[&str]| {
        arguments.iter().skip(1).any(|argument| names.iter().any(|name| argument.as_ref() == *name))
    };
    arguments.len() == 3 && has(&["--version", "-V"]) && has(&["--verbose"])
}

/// Prints the report of this process, a program without further facts, if its arguments request
/// it. Returns whether they do.
#[must_use]
pub fn report_build_if_requested(program: &str, version: &str) -> bool {
    let is_requested = requests_build_report(&env::args_os().collect::<Vec<_>>());
    if is_requested && let Err(error) = print(&build_report(program, version, &[])) {
        say(format_args!("error: {error:#}"));
    }
    is_requested
}

/// Ends the program, because `--verbose` has no meaning without `--version`.
pub fn refuse_verbose(command: &mut Command) -> ! {
    let message = "'--verbose' is an option of '--version' alone";
    command.error(ErrorKind::ArgumentConflict, message).exit()
}

/// The report, one fact a line. `facts` are those that only this program has.
#[must_use]
pub fn build_report(program: &str, version: &str, facts: &[(&str, String)]) -> String {
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
    let kernel = kernel.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    let common = [
        ("commit", COMMIT.unwrap_or("unknown").to_owned()),
        ("processor", format!("{} ({linked})", env::consts::ARCH)),
        ("system", format!("{} {kernel}", env::consts::OS)),
    ];
    let lines = common.iter().chain(facts).map(|(name, value)| format!("{name}: {value}\n"));
    format!("{program} {version}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_requested_by_both_options_alone() {
        let is_request =
            |options: &[&str]| requests_build_report(&[&["gridhaul"], options].concat());
        assert!(is_request(&["--version", "--verbose"]) && is_request(&["--verbose", "-V"]));
        let others: [&[&str]; 4] =
            [&["--version"], &["--verbose"], &["--version", "--verbose", "x"], &["run", "-V"]];
        assert!(others.iter().all(|options| !is_request(options)));
    }

    #[test]
    fn facts_of_the_program_follow_the_common_ones() {
        let report = build_report("gridhaul-relay", "1.2.3", &[("features", "none".to_owned())]);
        let names: Vec<_> = report.lines().map(|line| line.split(':').next().unwrap()).collect();
        let expected = ["gridhaul-relay 1.2.3", "commit", "processor", "system", "features"];
        assert_eq!(names, expected, "{report}");
    }
}
