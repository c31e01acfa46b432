//! Explanations of captures, and scenarios from them.

use crate::support::Desk;

/// A client that uploads over a line of 2 Mbit/s, with a receive window of a fifth of what fills
/// it, or of more.
fn scenario(window: &str) -> String {
    format!(
        "title = 'upload'\nduration = '10 s'\nwarmup = '0 s'\nreplications = 1\n\
         [node]\nclient = {{}}\nbox = {{}}\nserver = {{}}\n\
         [link.lan]\nfrom = 'client'\nto = 'box'\nboth = {{ rate = '1 Gbit/s', delay = '10 us' }}\n\
         [link.line]\nfrom = 'box'\nto = 'server'\n\
         both = {{ rate = '2 Mbit/s', delay = '100 ms', queue = '60 packets' }}\n\
         [stack.t]\nreceive_window = '{window}'\n\
         [flow.upload]\nfrom = 'client'\nto = 'server'\nload = 'bulk'\nstack = 't'\n"
    )
}

/// A desk with the captures `lan.forward.pcapng` and `lan.reverse.pcapng` in `results/upload`.
fn captured(window: &str) -> Desk {
    let desk = Desk::new().file("upload.toml", scenario(window));
    let run = desk.run("run upload.toml --pcap lan -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    desk
}

const CAPTURES: &str = "results/upload/lan.forward.pcapng results/upload/lan.reverse.pcapng";

#[test]
fn a_capture_is_explained_in_a_sentence_a_table_and_all_numbers() {
    let desk = captured("10 kB");
    let text = desk.run(&format!("explain {CAPTURES}"));
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""), "{text:?}");
    assert!(text.out.starts_with("1. 10.0.255.254:1024 → 10.2.255.254:7 ("), "{}", text.out);
    let limit = ": limited by the receive window: the bytes in flight filled the receive window";
    assert!(text.out.contains(limit), "{}", text.out);

    let table = desk.run(&format!("explain {CAPTURES} --format csv"));
    let lines: Vec<_> = table.out.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains(",receive_window,high,"), "{table:?}");
    let cells = lines[0].split(',').count();
    assert!(cells > 30 && lines[0].ends_with("share_link_rate"), "{}", lines[0]);

    let json = desk.run(&format!("explain {CAPTURES} --format json --out all.json"));
    assert_eq!((json.code, json.out.as_str()), (Some(0), ""), "{json:?}");
    let facts: serde_json::Value = serde_json::from_str(&desk.text("all.json")).unwrap();
    let connection = &facts["connections"][0];
    assert_eq!(connection["verdict"]["limit"], "receive_window", "{connection}");
    assert_eq!(connection["position"]["at"], "sender", "{connection}");

    let details = desk.run(&format!("explain {CAPTURES} --connection 1"));
    assert!(details.out.contains("\n  largest receive window  "), "{}", details.out);
    let missing = desk.run(&format!("explain {CAPTURES} --connection 2"));
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("--connection 2: the capture has 1 connections"), "{missing:?}");
}

#[test]
fn a_file_that_is_no_capture_is_an_error_with_the_byte() {
    let desk = captured("10 kB").file("notes.txt", "time,bytes\n0,200\n1,200\n2,200\n");
    let path = desk.dir.path().join("results/upload/lan.forward.pcapng");
    let whole = std::fs::read(path).unwrap();
    let desk = desk.file("cut.pcapng", &whole[..whole.len() - 9]);
    for (file, message) in [
        ("notes.txt", "notes.txt: byte 0: expected pcap or pcapng"),
        ("cut.pcapng", "the file ends within a packet"),
        ("missing.pcap", "cannot read missing.pcap"),
        ("results", "results is a folder"),
    ] {
        let done = desk.run(&format!("explain {file}"));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{file}: {done:?}");
        assert!(done.err.contains(message), "{file}: {}", done.err);
    }
}

#[test]
fn a_capture_becomes_a_scenario_with_the_estimated_link_and_the_load() {
    let desk = captured("1 MB");
    let import = desk.run(&format!("import pcap {CAPTURES} --out measured"));
    assert_eq!(import.code, Some(0), "{import:?}");
    let text = desk.text("measured/scenario.toml");
    assert!(text.contains("rate = \"2 Mbit/s\"") || text.contains("rate = \"2_"), "{text}");
    for line in
        ["# median of the busy periods of connection 1", "delay = \"100", "[flow.connection-1-up]"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let check = desk.run("check measured/scenario.toml");
    assert_eq!(check.code, Some(0), "{check:?}");
    let run = desk.run("run measured/scenario.toml --csv -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    let again = desk.run(&format!("import pcap {CAPTURES} --out measured"));
    assert!(again.code == Some(2) && again.err.contains("measured exists"), "{again:?}");
}
