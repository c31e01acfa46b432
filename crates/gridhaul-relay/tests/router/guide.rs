//! The commands and files of the guide work as they are printed.

use std::fs;
use std::path::Path;

use crate::network::{Network, Side, is_possible, wait_until};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/hybrid-router.md");

/// The blocks of the guide in a language.
fn blocks(language: &str) -> Vec<String> {
    let text = fs::read_to_string(GUIDE).unwrap();
    let fence = format!("```{language}\n");
    let starts = text.split(&fence).skip(1);
    starts.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn name(block: &str) -> &str {
    block.lines().next().unwrap().trim_start_matches("# ")
}

#[test]
fn the_examples_are_those_of_the_guide() {
    let blocks = blocks("toml");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let path = format!("{}/examples/{}", env!("CARGO_MANIFEST_DIR"), name(&block));
        assert_eq!(fs::read_to_string(path).unwrap(), block);
    }
}

#[test]
fn the_commands_of_the_guide_work_at_both_routers() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(["", ""]);
    let state = network.config(Side::Terminal).with_file_name("state");
    for (side, block) in [Side::Terminal, Side::Centre].into_iter().zip(blocks("toml")) {
        // The folder of records is that of the test, and there is no Internet.
        let keys = format!("[router]\nstate = {:?}", state.to_str().unwrap());
        fs::write(network.config(side), block.replace("[router]", &keys)).unwrap();
    }
    let shell = blocks("sh");
    // The tests of `gridhaul` run its simulation.
    let commands = shell.iter().flat_map(|block| block.lines());
    let commands: Vec<_> = commands.filter(|line| line.starts_with("gridhaul-relay ")).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    let program = env!("CARGO_BIN_EXE_gridhaul-relay");
    network.start(Side::Centre);
    for command in commands {
        if command.ends_with(" &") {
            network.start(Side::Terminal);
            wait_until("DVB-T and GPRS are usable", || {
                let status = network.status(Side::Terminal, "/status").unwrap();
                status["link_round_trip_s"].as_object().is_some_and(|known| known.len() == 2)
            });
            continue;
        }
        if command.ends_with("--remove") {
            network.stop(Side::Terminal, "-KILL");
        }
        let folder = network.config(Side::Terminal);
        let folder = folder.parent().unwrap_or(Path::new(""));
        let command = command
            .replace("gridhaul-relay", program)
            .replace("terminal.toml", &format!("{}/terminal.toml", folder.display()));
        let output = network.run(Side::Terminal, &command);
        assert!(!output.is_empty(), "{command}");
    }
    assert_eq!(network.run(Side::Terminal, "nft list tables"), "");
    assert_eq!(network.link(Side::Centre, Some("upload_acks")), "gprs");
}
