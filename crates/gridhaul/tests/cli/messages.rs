//! Messages of errors, with their remedies, and of the state of the machine.

use std::fs::File;

use crate::support::{Desk, SMALL};

#[test]
fn a_key_without_support_names_a_backend_that_has_it() {
    // Fragments of datagrams in a capture.
    let fragments = SMALL
        .replace("duration", "record.pcap = [\"wire\"]\nduration")
        .replace("delay = \"10 ms\"", "delay = \"10 ms\", mtu = \"1500 B\"")
        .replace(
            "load = \"bulk\"",
            "transport = \"datagram\"\nload.periodic = { size = \"4 kB\", every = \"1 s\" }",
        );
    let desk = Desk::new().file("fragments.toml", fragments);
    let done = desk.run("run fragments.toml");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("the simulator writes no fragments"), "{}", done.err);
    assert!(done.err.contains("'--on emu' supports every key"), "{}", done.err);
    assert!(!done.err.contains("--on sim"), "{}", done.err);
}

#[test]
fn a_full_disk_has_an_exit_code_of_its_own() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml -q --csv=/dev/full");
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(done.err.contains("No space left"), "{}", done.err);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = desk.command("run small.toml -q --json").stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(4));
}

#[test]
fn numbers_beyond_their_range_and_units_of_bytes_get_the_right_value() {
    let desk = Desk::new().file("small.toml", SMALL);
    for (line, text) in [
        (
            "run small.toml --seed 99999999999999999999999",
            "expected a whole number up to 18446744073709551615",
        ),
        ("run small.toml --replications 5000000000", "expected a whole number up to 4294967295"),
        ("run small.toml --replications 0", "expected a whole number from 1, such as 3"),
        ("run small.toml --set replications='\"x\"'", "expected a whole number from 1 to"),
        (
            "run small.toml --set link.wire.both.rate='3 kB/s'",
            "rates are in bits: 3 kB/s is \"24 kbit/s\"",
        ),
        ("run small.toml --set link.wire.both.rate='2.4 Tbit/s'", "2.4 Tbit/s is \"2400 Gbit/s\""),
    ] {
        let done = desk.run(line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.err.contains(text), "{line}: {}", done.err);
    }
}

#[test]
fn an_unknown_key_is_answered_with_all_keys() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --set link.wire.both.zzzzzz=1");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(!done.err.contains(" more"), "{}", done.err);
}

#[test]
fn a_warning_that_all_backends_give_is_printed_once() {
    let unused = format!("{SMALL}\n[stack.spare]\nsack = true\n");
    let desk = Desk::new().file("unused.toml", unused);
    let done = desk.run("run unused.toml --on sim,model");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.err.matches("this stack has no effect").count(), 1, "{}", done.err);
    let report = desk.text("results/unused/report.html");
    assert_eq!(report.matches("this stack has no effect").count(), 1);
    let done = desk.run("compare unused.toml results/unused unused.toml -q --on sim");
    assert_eq!(done.err.matches("this stack has no effect").count(), 1, "{}", done.err);
}
