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

#[test]
fn a_test_of_iperf3_becomes_the_link_that_it_measured() {
    let interval =
        |rate: f64| format!("{{\"sum\": {{\"bits_per_second\": {rate}, \"omitted\": false}}}}");
    // Intervals of the sender are multiples of its socket buffer, those of the receiver the rate.
    let intervals = |step: &dyn Fn(i32) -> f64| {
        (0..10).map(|number| interval(step(number))).collect::<Vec<_>>().join(", ")
    };
    let of_sender = intervals(&|number| if number < 2 { 1.6e7 } else { 7.5e6 });
    let of_receiver = intervals(&|number| 9.3e6 + 1e4 * f64::from(number));
    let log = format!(
        "{{\"start\": {{\"version\": \"iperf 3.12\", \"tcp_mss_default\": 1448, \"test_start\": \
         {{\"protocol\": \"TCP\", \"num_streams\": 1, \"duration\": 10, \"reverse\": 0}}}}, \
         \"intervals\": [{of_sender}], \
         \"end\": {{\"streams\": [{{\"sender\": {{\"min_rtt\": 24000}}}}], \
         \"sum_sent\": {{\"bytes\": 11584000, \"retransmits\": 16}}, \"sum_received\": \
         {{\"seconds\": 10.1, \"bits_per_second\": 9345000}}}}}}"
    );
    let server = log
        .replace(&of_sender, &of_receiver)
        .replace("\"version\"", "\"accepted_connection\": {}, \"version\"")
        .replace("9345000", "9000000");
    let desk = Desk::new()
        .file("test.json", &log)
        .file("failed.json", "{\"error\": \"unable to connect to server\"}")
        .file("streams.json", log.replace("\"num_streams\": 1", "\"num_streams\": 4000000000"))
        .file("server.json", &server)
        .file("old.json", log.replace("sum_received", "none"))
        .file("udp.json", log.replace("\"TCP\"", "\"UDP\"").replace("min_rtt", "none"));
    let done = desk.run("import iperf test.json -o link.toml");
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = desk.text("link.toml");
    // The receiver's 9.345 Mbit/s, with 52 B of headers for each 1,448 B; 12 ms; 16 of 8,016
    // segments.
    for line in ["rate = \"9680.594 kbit/s\"", "delay = \"12 ms\"", "bernoulli = \"0.1996 %\""] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(desk.run("run link.toml --csv -q").code, Some(0));
    // The median of the receiver's intervals does not contain the beginning of the test; without
    // the receiver's total, the intervals of the sender are all that there is: 7.769 Mbit/s.
    let server = desk.run("import iperf server.json -o -").out;
    assert!(server.contains("rate = \"9680.594 kbit/s\""), "{server}");
    let old = desk.run("import iperf old.json").out;
    assert!(old.contains("rate = \"7769.337 kbit/s\"") && old.contains("writes"), "{old}");
    let failed = desk.run("import iperf failed.json");
    assert!(failed.code == Some(2) && failed.err.contains("unable to connect"), "{failed:?}");
    let streams = desk.run("import iperf streams.json");
    assert!(streams.code == Some(2) && streams.err.contains("at most 128 streams"), "{streams:?}");
    assert!(done.err.contains("warning: the delay contains the queue of the test"), "{done:?}");
    let without_delay = desk.run("import iperf udp.json");
    assert!(without_delay.err.contains("--delay '20 ms'"), "{without_delay:?}");
    let udp = desk.run("import iperf udp.json --delay '20 ms' -o udp.toml");
    assert_eq!((udp.code, udp.err.contains("warning")), (Some(0), false), "{udp:?}");
    assert_eq!(desk.run("run udp.toml --csv -q").code, Some(0));
    let both = log.replace("\"end\": {", "\"end\": {\"sum_sent_bidir_reverse\": {}, ");
    let desk = desk.file("both.json", both);
    let both = desk.run("import iperf both.json");
    assert!(both.code == Some(2) && both.err.contains("without --bidir"), "{both:?}");
}

#[test]
fn the_output_of_ping_becomes_a_link() {
    let linux = "PING host (192.0.2.1) 56(84) bytes of data.\n\
                 64 bytes from host: icmp_seq=1 ttl=58 time=30.4 ms\n\
                 64 bytes from host: icmp_seq=2 ttl=58 time=30.0 ms\n\
                 64 bytes from host: icmp_seq=3 ttl=58 time=32.0 ms\n\
                 4 packets transmitted, 3 received, 25% packet loss, time 3004ms\n";
    let windows = "Reply from 192.0.2.1: bytes=32 time=12ms TTL=58\r\n\
                   Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),\r\n";
    let desk =
        Desk::new().file("linux.txt", linux).file("windows.txt", windows).file("no.txt", "-");
    let reply = "64 bytes from host: icmp_seq=1 ttl=58 time=30.4 ms\n";
    let desk = desk.file("equal.txt", reply.repeat(3));
    let done = desk.run("import ping linux.txt --rate '5 Mbit/s' -o link.toml");
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = desk.text("link.toml");
    // Half of 30 ms without the transmission of 84 B; 1 - sqrt(1 - 1/4) of the packets of each
    // direction.
    for line in
        ["delay = \"14.866 ms\"", "bernoulli = \"13.3975 %\"", "jitter = { size = \"400 us\""]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(desk.run("run link.toml --csv -q").code, Some(0));
    let short = desk.run("import ping windows.txt --rate '1 Mbit/s'");
    assert!(
        short.out.contains("delay = \"5.52 ms\"") && !short.out.contains("loss ="),
        "{short:?}"
    );
    // One round trip says nothing about the smallest one.
    assert!(short.out.contains("99 % interval 0.000 to 12.000 ms"), "{short:?}");
    let equal = desk.run("import ping equal.txt --rate '1 Mbit/s'");
    // Times that differ by less than the last digit: 99 times 0.1 ms.
    assert!(equal.out.contains("99 % interval 20.500 to 30.400 ms"), "{equal:?}");
    let none = desk.run("import ping no.txt --rate '1 Mbit/s'");
    assert!(none.code == Some(2) && none.err.contains("no.txt: the file: no line has"), "{none:?}");
}

#[test]
fn round_trips_of_ping_contain_the_transmission_of_both_directions() {
    let line = |address: &str, number: u32, ms: f64| {
        format!("64 bytes from {address}: icmp_seq={number} ttl=64 time={ms} ms\n")
    };
    let lines = |numbers: &[u32]| -> String {
        numbers.iter().map(|number| line("192.0.2.1", *number, 194.4)).collect()
    };
    let desk = Desk::new()
        .file("slow.txt", lines(&[1, 2]))
        .file("ipv6.txt", line("host (2001:db8::1)", 1, 0.9))
        .file("cut.txt", lines(&[65_534, 65_535, 1, 1, 2]));
    let imported = |arguments: &str| desk.run(&format!("import ping {arguments}"));
    // 30 ms in each direction, and 67.2 ms for 84 B.
    let slow = imported("slow.txt --rate '10 kbit/s'");
    assert!(slow.out.contains("\ndelay = \"30 ms\"") && !slow.out.contains("loss ="), "{slow:?}");
    let ipv6 = imported("ipv6.txt --rate '2 Mbit/s'");
    assert!(ipv6.out.contains("of transmission of 104 B"), "{ipv6:?}");
    let too_slow = imported("slow.txt --rate '5 kbit/s'");
    let expected = "--rate: the smallest round trip, 194.400 ms, is shorter than the transmission";
    assert!(too_slow.code == Some(2) && too_slow.err.contains(expected), "{too_slow:?}");
    // Without the last lines, a missing number is a loss: one of five, as 0 follows 65,535.
    let cut = imported("cut.txt --rate '1 Mbit/s'");
    assert!(cut.out.contains("1 of 5 round trips lost"), "{cut:?}");
}

#[test]
fn a_table_of_meters_becomes_groups_with_their_mean_distance() {
    let table = "feeder,x_m,y_m,class\nNorth 1,0,0,head\nNorth 1,300,400,house\nNorth \
    1,0,100,house\n\
                 North 1,600,800,farm\nsouth,10,10,\nsouth,30,10,\n";
    let desk = Desk::new()
        .file("meters.csv", table)
        .file("wrong.csv", "feeder,x_m,y_m\nA,1,two\n")
        .file("same.csv", "feeder,x_m,y_m\nA 1,1,2\n\na-1,3,4\n")
        .file("centre.csv", "feeder,x_m,y_m\nCentre,1,2\n")
        .file("groups.csv", "feeder,x_m,y_m,class\na,1,2,b-c\na-b,1,2,c\na-b-c,1,2,d\n")
        .file("columns.csv", "line,x_m,y_m\nA,1,2\n");
    let done = desk.run("import meters meters.csv --every '1 min' -o meters.toml");
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = desk.text("meters.toml");
    // 500 m and 100 m; 1,000 m; and 10 m from the middle of two.
    for line in [
        "north-1-house = { count = 2 }",
        "power_line = { class = \"narrowband\", distance = \"300 m\" }",
        "power_line = { class = \"narrowband\", distance = \"1000 m\" }",
        "south-meter = { count = 2 }",
        "power_line = { class = \"narrowband\", distance = \"10 m\" }",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(desk.run("run meters.toml --csv -q").code, Some(0));
    let wrong = desk.run("import meters wrong.csv");
    assert!(wrong.err.contains("wrong.csv: line 2: y_m: expected a number"), "{wrong:?}");
    let same = desk.run("import meters same.csv");
    assert!(same.err.contains("same.csv: line 4: feeders \"A 1\" and \"a-1\""), "{same:?}");
    for file in ["centre.csv", "groups.csv"] {
        let taken = desk.run(&format!("import meters {file}"));
        assert!(taken.err.contains("two nodes of the scenario would have the name"), "{taken:?}");
    }
    let columns = desk.run("import meters columns.csv");
    assert!(columns.err.contains("columns.csv: line 1: no column feeder"), "{columns:?}");
}

#[test]
fn distances_of_meters_with_degrees_do_not_depend_on_the_longitude() {
    let table = |longitude: f64| {
        format!("feeder,lat,lon,class\na,40.00,{longitude},head\na,40.01,{longitude},house\n")
    };
    let desk = Desk::new()
        .file("beijing.csv", table(116.4))
        .file("greenwich.csv", table(0.0))
        .file("date.csv", "feeder,lat,lon,class\na,60,179.995,head\na,60,-179.995,house\n")
        .file("no.csv", "feeder,lat,lon\na,95,200\n")
        .file("heads.csv", "feeder,x,y,class\na,1,1,head\na,2,2,house\na,3,3,head\n");
    for (file, metres) in [("beijing", 1_112), ("greenwich", 1_112), ("date", 556)] {
        let done = desk.run(&format!("import meters {file}.csv"));
        assert!(done.out.contains(&format!("distance = \"{metres} m\"")), "{file}: {done:?}");
    }
    for (file, expected) in [
        ("no.csv", "no.csv: line 2: no place has latitude 95 and longitude 200"),
        ("heads.csv", "heads.csv: line 4: feeder \"a\" has two rows of class \"head\""),
    ] {
        let done = desk.run(&format!("import meters {file}"));
        assert!(done.code == Some(2) && done.err.contains(expected), "{done:?}");
    }
}

#[test]
fn topologies_in_graphml_and_json_become_links() {
    let graphml = "<?xml version='1.0'?><graphml><key id='d0' for='edge' attr.name='LinkSpeedRaw'/>\
                   <key id='d1' for='node' attr.name='Latitude'/>\
                   <key id='d2' for='node' attr.name='Longitude'/><graph>\
                   <node id='0'><data key='d1'>50.0</data><data key='d2'>8.0</data></node>\
                   <node id='1'><data key='d1'>51.0</data><data key='d2'>8.0</data></node>\
                   <node id='2'/><edge source='0' target='1'><data key='d0'>40000000</data></edge>\
                   <edge source='1' target='2'/></graph></graphml>";
    let mixed = "<graphml><key id='d0' attr.name='LinkSpeedRaw'/>\
                 <key id='d1' attr.name='Latitude'/><key id='d2' attr.name='Longitude'/>\
                 <graph><data key='d0'>7</data>\
                 <node id='0'><data key='d1'>50.0</data><data key='d2'>8.0</data></node>\
                 <edge source='0' target='1'><data key='d0'>40000000</data></edge>\
                 <node id='1'><data key='d1'>51.0</data><data key='d2'>8.0</data></node>\
                 <data key='d0'>9</data></graph></graphml>";
    let links = "{\"nodes\": [{\"id\": \"a-b\"}, {\"id\": \"c\"}, {\"id\": \"a\"}, \
                 {\"id\": \"b-c\"}], \"edges\": [{\"source\": \"a-b\", \"target\": \"c\"}, \
                 {\"source\": \"a\", \"target\": \"b-c\"}, {\"source\": \"a\", \
                 \"target\": \"c\"}]}";
    let json = "{\"directed\": false, \"nodes\": [{\"id\": \"a\"}, {\"id\": \"b 1\"}, {\"id\": \
    \"c\"}], \
                \"edges\": [{\"source\": \"a\", \"target\": \"b 1\", \"rate\": \"3 Mbit/s\", \
                \"delay_ms\": 4}, {\"source\": \"b 1\", \"target\": \"c\", \"rate\": 2, \
                \"delay\": 7}]}";
    let desk = Desk::new()
        .file("zoo.graphml", graphml)
        .file("mixed.graphml", mixed)
        .file("links.json", links)
        .file("graph.json", json)
        .file("end.json", json.replace("\"target\": \"c\"", "\"target\": \"d\""));
    let zoo = desk.run("import topology zoo.graphml -o zoo.toml");
    assert_eq!(zoo.code, Some(0), "{zoo:?}");
    let text = desk.text("zoo.toml");
    // A degree of latitude is 111.19 km: 556 us at 5 us/km.
    for line in [
        "rate = \"40 Mbit/s\"",
        "delay = \"556 us\"",
        "rate = \"10 Mbit/s\"",
        "[flow.0]",
        "[flow.2]",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(desk.run("run zoo.toml --csv -q").code, Some(0));
    // Data belongs to the element that contains it, whatever the order of the elements.
    let mixed = desk.run("import topology mixed.graphml");
    assert!(mixed.out.contains("delay = \"556 us\""), "{mixed:?}");
    assert_eq!(mixed.out.matches("rate = \"40 Mbit/s\"").count(), 1, "{mixed:?}");
    let links = desk.run("import topology links.json");
    assert_eq!((links.code, links.out.matches("\n[link.").count()), (Some(0), 2 * 3), "{links:?}");
    let units = desk.run("import topology graph.json --rate-unit 'Mbit/s' --delay-unit ms");
    for line in [
        "rate = \"3 Mbit/s\"",
        "delay = \"4 ms\"",
        "rate = \"2 Mbit/s\"",
        "delay = \"7 ms\"",
        "b-1 = {} # b 1",
    ] {
        assert!(units.out.contains(line), "{line}: {units:?}");
    }
    let without = desk.run("import topology graph.json");
    assert!(without.err.contains("edges[1]: rate: expected a rate"), "{without:?}");
    let missing = desk.run("import topology end.json --rate-unit 'Mbit/s' --delay-unit ms");
    assert!(missing.err.contains("edges[1]: the link has node \"d\""), "{missing:?}");
}
