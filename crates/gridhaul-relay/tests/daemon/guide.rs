//! The commands and files of the guide work as they are printed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_testing::ReservedPort;

use crate::relays::PROGRAM;

/// Ports of the guide, which may be in use on the machine of the test.
const PORTS: [u16; 4] = [7070, 4059, 9180, 9181];

/// The guide with other ports.
fn guide(ports: &[ReservedPort; PORTS.len()]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/relay.md");
    let mut text = fs::read_to_string(path).unwrap();
    for (port, reserved) in PORTS.iter().zip(ports) {
        let free = reserved.address().port();
        // Both forms of an address: with a colon, and as a file of bash.
        text = text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{free}"));
        text = text.replace(&format!("127.0.0.1/{port}"), &format!("127.0.0.1/{free}"));
    }
    text
}

/// The blocks of the guide in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = text.split(&fence).skip(1);
    starts.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_are_those_of_the_guide() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/relay.md");
    for block in blocks(&fs::read_to_string(root).unwrap(), "toml") {
        let name = block.lines().next().unwrap().trim_start_matches("# ");
        let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(fs::read_to_string(path).unwrap(), block, "{name}");
    }
}

#[test]
fn the_commands_of_the_guide_work() {
    let ports = PORTS.map(|_| ReservedPort::new());
    let text = guide(&ports);
    let folder = tempfile::tempdir().unwrap();
    for block in blocks(&text, "toml") {
        let name = block.lines().next().unwrap().trim_start_matches("# ");
        fs::write(folder.path().join(name), &block).unwrap();
    }
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    std::os::unix::fs::symlink(scenarios, folder.path().join("scenarios")).unwrap();
    let mut running: Vec<Child> = Vec::new();
    let lines: Vec<String> = blocks(&text, "sh")
        .iter()
        .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(lines.len() > 6, "{lines:?}");
    for line in lines.iter().filter(|line| !line.starts_with("cargo ")) {
        if line.contains(" log ") && !running.is_empty() {
            wait_for_line(&folder.path().join("messages.jsonl"), "\"eof\"");
            stop(&mut running);
        }
        // Redirections are left to the shell.
        let arguments =
            line.strip_prefix("gridhaul-relay ").filter(|arguments| !arguments.contains('>'));
        let mut command = match arguments {
            Some(arguments) => {
                let mut command = Command::new(PROGRAM);
                command.args(arguments.trim_end_matches(" &").split(' '));
                command
            }
            None => {
                let mut command = Command::new("bash");
                command.args(["-c", &line.replace("gridhaul-relay", PROGRAM)]);
                command
            }
        };
        command.current_dir(folder.path());
        if line.ends_with(" &") {
            running.push(start(&mut command));
        } else {
            let done = command.output().unwrap();
            assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
        }
    }
    let delivered = fs::read_to_string(folder.path().join("messages.jsonl")).unwrap();
    assert!(delivered.contains("reading 42"), "{delivered}");
    assert_eq!(delivered.lines().count(), 3, "{delivered}");
}

/// Starts a relay, and waits until it is ready: a user does not type faster.
fn start(command: &mut Command) -> Child {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("is ready")), "a relay has not started");
    // The pipe must not fill.
    thread::spawn(move || lines.for_each(drop));
    child
}

/// Waits until a file has a line with this text.
fn wait_for_line(path: &Path, text: &str) {
    let begun = Instant::now();
    while !fs::read_to_string(path).unwrap_or_default().contains(text) {
        assert!(begun.elapsed() < Duration::from_secs(30), "waiting for {text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Stops the relays as systemd does.
fn stop(running: &mut Vec<Child>) {
    for mut child in running.drain(..).rev() {
        let begun = Instant::now();
        Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(child.wait().unwrap().success());
        assert!(begun.elapsed() < Duration::from_secs(5), "a relay stops at once");
        thread::sleep(Duration::from_millis(500));
    }
}
