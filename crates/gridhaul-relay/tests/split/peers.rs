//! The matrix of ends on comparable programs: a table, because their results are not ours to fix.

use std::thread;

use crate::matrix::{self, CASES, Case};
use crate::proxies::{Kind, Proxy, listen};
use crate::relay;

const KINDS: [Kind; 5] =
    [Kind::Split, Kind::Haproxy, Kind::Nginx, Kind::NginxHalfClose, Kind::Socat];

fn result(kind: Kind, case: Case) -> Result<(), String> {
    let server = listen();
    let proxy = Proxy::start(kind, relay(), server.local_addr().unwrap(), "");
    let server = (case != Case::UpstreamDown).then_some(server);
    matrix::run(case, proxy.clients, server)
}

#[test]
#[ignore = "prints a table of other programs: cargo xtask bench relay --matrix"]
fn the_ends_of_connections_are_compared() {
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| kind.is_installed()).collect();
    for kind in KINDS.iter().filter(|kind| !kind.is_installed()) {
        println!("{} is not installed", kind.name());
    }
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    println!("| case | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    let mut failures = Vec::new();
    for case in CASES {
        let threads: Vec<_> =
            kinds.iter().map(|&kind| (kind, thread::spawn(move || result(kind, case)))).collect();
        let mut row = format!("| {case} |");
        for (kind, thread) in threads {
            let result = thread.join().unwrap();
            row += if result.is_ok() { " kept |" } else { " **lost** |" };
            if let Err(error) = result {
                failures.push(format!("{}: {case}: {error}", kind.name()));
            }
        }
        println!("{row}");
    }
    println!("\n{}", failures.join("\n"));
    assert!(!failures.iter().any(|failure| failure.starts_with(Kind::Split.name())));
}
