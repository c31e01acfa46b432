//! The matrix of ends of connections through each mode. bench/bridge/prove.py has further cases,
//! and chains of bridges.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::cases::{MODES, rule};
use crate::matrix::{self, CASES, Case};
use crate::network::{Devices, Network, address, is_possible};

#[test]
fn every_end_of_a_connection_passes_every_mode() {
    if !is_possible() {
        return;
    }
    let modes = MODES.map(|mode| thread::spawn(move || failures(mode)));
    let failures: Vec<_> = modes.into_iter().flat_map(|mode| mode.join().unwrap()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The deviations of one mode.
fn failures(mode: &str) -> Vec<String> {
    let mut network = Network::new(Devices::default());
    network.start(&rule(mode));
    let pass = |number: usize, case: Case| {
        let server = SocketAddr::new(address(false, 2), 7_000 + number as u16);
        let bind = || TcpListener::bind(server).unwrap();
        let listener = (case != Case::UpstreamDown).then(|| network.right.enter(bind).unwrap());
        let run = || matrix::run(case, server, listener);
        network.left.enter(run).unwrap().map_err(|error| format!("{mode}: {case}: {error}"))
    };
    thread::scope(|scope| {
        let pass = &pass;
        let start = |(number, case)| scope.spawn(move || pass(number, case));
        let cases: Vec<_> = CASES.into_iter().enumerate().map(start).collect();
        cases.into_iter().filter_map(|case| case.join().unwrap().err()).collect()
    })
}
