//! Import of configurations of NATIG.

use std::fmt::Write;

use crate::support::Desk;

/// A mesh of gateways and a control centre, in the format of NATIG.
fn topology(nodes: usize) -> String {
    let mut text = "{\"Channel\": [{\"P2PDelay\": \"2ms\", \"CSMAdelay\": \"3260\", \
                    \"P2PRate\": \"40Mb/s\", \"MTU\": 1500}], \"Node\": ["
        .to_owned();
    for node in 0..nodes {
        let peers: Vec<_> =
            (0..nodes).filter(|peer| *peer != node).map(|peer| peer.to_string()).collect();
        let comma = if node == 0 { "" } else { ", " };
        let _ = write!(
            text,
            "{comma}{{\"name\": {node}, \"connections\": [{}], \"UseCSMA\": 1, \"UseWifi\": 0, \
             \"error\": \"0.001\"}}",
            peers.join(", ")
        );
    }
    text + "]}"
}

/// Substations of two elements each, polled each 15 ms for 2 s.
fn grid(substations: usize) -> String {
    let names: Vec<_> = (1..=substations)
        .map(|number| {
            format!("{{\"name\": \"SS_{number}\", \"node\": [\"n1\"], \"load\": [\"l1\"]}}")
        })
        .collect();
    format!(
        "{{\"Simulation\": [{{\"SimTime\": 2, \"PollReqFreq\": 15}}], \"microgrid\": [{}]}}",
        names.join(", ")
    )
}

#[test]
fn a_topology_of_natig_becomes_a_scenario_that_runs() {
    let desk = Desk::new().file("topology.json", topology(3)).file("grid.json", grid(2));
    let done = desk.run("import natig topology.json --grid grid.json -o natig.toml");
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{done:?}");
    let text = desk.text("natig.toml");
    // Each connection is listed by both of its nodes, and is one link.
    assert_eq!(text.matches("[link.").count(), 3 + 2, "{text}");
    let link = "[link.gateway-1-gateway-2]\nfrom = \"gateway-1\"\nto = \"gateway-2\"\n\
                both = { rate = \"40 Mbit/s\", delay = \"3.26 us\", \
                loss = { bernoulli = \"0.1 %\" } }";
    assert!(text.contains(link), "{text}");
    assert!(text.contains("both = { rate = \"40 Mbit/s\", delay = \"2 ms\" }"), "{text}");
    // 20 B of headers, and 5 B for each of two elements.
    let flow = "[flow.response-SS_1]\nfrom = \"SS_1\"\nto = \"control\"\n\
                load = { periodic = { size = \"30 B\", every = \"15 ms\" } }\n\
                route = [\"access-1\", \"gateway-1-control\"]";
    assert!(text.contains(flow), "{text}");
    let run = desk.run("run natig.toml --csv -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    let printed = desk.run("import natig topology.json --grid grid.json");
    assert_eq!(printed.out, text);
}

#[test]
fn the_mesh_of_eleven_substations_has_121_paths() {
    let desk = Desk::new().file("t.json", topology(12)).file("g.json", grid(11));
    let done = desk.run("import natig t.json --grid g.json --all-paths --poll '10 ms' -o n.toml");
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = desk.text("n.toml");
    assert_eq!(text.matches("[flow.poll-").count(), 121);
    assert_eq!(text.matches("every = \"10 ms\"").count(), 2 * 121);
    let detour = "route = [\"gateway-5-control\", \"gateway-2-gateway-5\", \"access-2\"]";
    let flow = "[flow.poll-SS_2-5]\nfrom = \"control\"\nto = \"SS_2\"\nload = {";
    let found = text.split(flow).nth(1).unwrap();
    assert!(found.lines().nth(1).unwrap() == detour, "{}", &found[..300]);
    let external = desk.run("import natig t.json --external");
    assert_eq!(external.out.matches("load = \"external\"").count(), 2 * 11, "{external:?}");
}

#[test]
fn errors_name_file_key_and_remedy() {
    let wrong_peer = topology(3).replacen("[1, 2]", "[1, 9]", 1);
    let desk = Desk::new()
        .file("t.json", topology(3))
        .file("peer.json", wrong_peer)
        .file("rate.json", topology(3).replace("40Mb/s", "fast"))
        .file("text.json", "{\"Node\": [")
        .file("grid5.json", grid(5))
        .file(
            "lone.json",
            topology(3).replace("[0, 2]", "[]").replace("[1, 2]", "[]").replace("[0, 1]", "[]"),
        );
    let mut checked = 0;
    for (arguments, expected) in [
        ("missing.json", "error: cannot read missing.json"),
        ("peer.json", "peer.json: Node[0].connections: node 0 cannot be connected to node 9"),
        ("rate.json", "rate.json: Channel[0].P2PRate: expected a rate such as \"60Mb/s\""),
        ("text.json", "text.json: line 1, column 10: expected JSON"),
        ("lone.json", "lone.json: Node: no node is connected to node 2, the control centre"),
        ("t.json --grid grid5.json", "grid5.json: microgrid: expected from 1 to 2 substations"),
        ("t.json --grid t.json", "t.json: microgrid: expected a list of objects"),
    ] {
        let done = desk.run(&format!("import natig {arguments}"));
        assert_eq!(done.code, Some(2), "{arguments}: {done:?}");
        assert!(done.err.contains(expected), "{arguments}: {}", done.err);
        checked += 1;
    }
    assert_eq!(checked, 7);
}
