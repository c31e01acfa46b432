//! The capture view: its texts and numbers are those of `gridhaul explain`.

use serde_json::{Value, json};

use super::page::Page;
use crate::explain::{CAPTURES, captured};
use crate::support::{Desk, words};

/// Head and arrays of an answer with packets.
struct Packets {
    head: Value,
}

impl Packets {
    fn of(page: &Page, request: &Value) -> Self {
        let (status, bytes) = page.post_bytes("api/capture/packets", &request.to_string());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        Self { head: serde_json::from_slice(&bytes[4..4 + length]).unwrap() }
    }

    fn count(&self, name: &str) -> usize {
        let arrays = self.head["arrays"].as_array().unwrap();
        let name = format!("{name}.time_s");
        let array = arrays.iter().find(|array| array["name"] == name).unwrap();
        array["length"].as_u64().unwrap() as usize
    }
}

/// Runs a command that the page shows.
fn printed(desk: &Desk, command: &Value) -> String {
    let arguments = command.as_str().unwrap().strip_prefix("gridhaul ").unwrap();
    let done = desk.run(arguments);
    assert_eq!(done.code, Some(0), "{command}\n{}", done.err);
    done.out
}

#[test]
fn texts_and_packets_of_a_capture_are_those_of_the_command_line() {
    let desk = captured("10 kB");
    let page = Page::open(&desk, CAPTURES);
    let subject: Value = serde_json::from_str(&page.get("api/subject").1).unwrap();
    assert!(subject["scenario"].is_null(), "{subject}");
    let capture = &subject["capture"];
    let mut sentences = String::new();
    for connection in capture["connections"].as_array().unwrap() {
        sentences += &format!("{}\n", connection["sentence"].as_str().unwrap());
        for note in connection["notes"].as_array().unwrap() {
            sentences += &format!("   note: {}\n", note.as_str().unwrap());
        }
    }
    assert_eq!(sentences, printed(&desk, &capture["command"]));
    assert_eq!(page.get("api/capture/connections.csv").1, printed(&desk, &capture["csv_command"]));

    let (_, facts) = page.get("api/capture/connection?number=1");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let details = printed(&desk, &facts["command"]);
    for row in facts["details"].as_array().unwrap() {
        let value = row["value"].as_str().unwrap();
        assert!(details.contains(value), "{value}: {details}");
    }

    let packets = Packets::of(&page, &json!({ "connection": 1 }));
    let table = printed(&desk, &packets.head["command"]);
    for (array, kind) in [
        ("first_transmissions", "segment"),
        ("retransmissions", "retransmission"),
        ("acknowledgements", "acknowledgement_and_window"),
        ("sack", "sack"),
    ] {
        let rows = table.lines().filter(|line| line.starts_with(&format!("{kind},"))).count();
        assert_eq!(packets.count(array), rows, "{array}");
    }
    assert!(packets.count("first_transmissions") > 100, "{}", packets.head);
    let (status, message) = page.post("api/capture/packets", r#"{"connection": 2}"#);
    assert_eq!((status, message.as_str()), (422, "connection 2: the capture has 1\n"));
}

#[test]
fn a_simulation_in_the_page_is_that_of_the_command_line() {
    let desk = captured("10 kB");
    let page = Page::open(&desk, CAPTURES);
    let (status, message) = page.post("api/capture/simulation", "{}");
    assert_eq!(status, 422, "the rate is unknown");
    assert!(message.contains("--rate"), "{message}");
    let request = json!({ "rate": "2 Mbit/s", "seed": 3, "tolerance": "5 %" });
    let (status, text) = page.post("api/capture/simulation", &request.to_string());
    assert_eq!(status, 200, "{text}");
    let summary: Value = serde_json::from_str(&text).unwrap();
    let command = summary["command"].as_str().unwrap();
    let options = "--simulate --seed 3 --rate '2 Mbit/s' --tolerance '5 %'";
    assert_eq!(command, format!("gridhaul explain {CAPTURES} {options}"));
    let text = printed(&desk, &summary["command"]);
    let connection = &summary["connections"][0];
    assert!(text.contains(connection["sentence"].as_str().unwrap()), "{connection}: {text}");
    let line = text.lines().find(|line| line.starts_with('1')).unwrap();
    let cells = connection["cells"].as_array().unwrap().iter().map(|cell| cell.as_str().unwrap());
    let cells: Vec<_> = cells.flat_map(words).collect();
    assert_eq!(words(line), cells);
    assert_eq!(summary["csv"], printed(&desk, &summary["csv_command"]));

    // The packets of the simulation are drawn over those of the capture.
    let packets = Packets::of(&page, &json!({ "connection": 1, "simulation": request }));
    let counts = ["first_transmissions", "simulated_first_transmissions"];
    let [measured, simulated] = counts.map(|name| packets.count(name));
    assert!(simulated.abs_diff(measured) <= measured / 20, "{measured} and {simulated}");
    let goodput = &packets.head["simulated_goodput"]["goodput_bit_per_s"];
    assert_eq!(goodput.as_array().unwrap().len(), 200);
}

#[test]
fn a_capture_is_answered_to_its_own_page_only() {
    let desk = captured("10 kB");
    let page = Page::open(&desk, CAPTURES);
    let (host, token) = (page.host().to_owned(), page.token().to_owned());
    let body = r#"{"connection": 1}"#;
    for path in ["packets", "simulation"] {
        let post = |target: &str, fields: &str| {
            let length = body.len();
            let head = format!("POST {target} HTTP/1.1\r\nContent-Length: {length}\r\n{fields}");
            page.request(&head, body).0
        };
        let own = format!("/{token}/api/capture/{path}");
        let json = "Content-Type: application/json\r\n";
        let fields = format!("Host: {host}\r\n{json}");
        assert_eq!(post(&format!("/api/capture/{path}"), &fields), 403);
        assert_eq!(post(&own, &format!("Host: attacker.example\r\n{json}")), 421);
        assert_eq!(post(&own, &format!("Host: {host}\r\n")), 415, "a form sends no JSON");
        for field in ["Origin: http://attacker.example", "Sec-Fetch-Site: cross-site"] {
            assert_eq!(post(&own, &format!("{fields}{field}\r\n")), 403, "{field}");
        }
    }
    for path in ["connection?number=1", "connections.csv"] {
        let head = format!("GET /{token}/api/capture/{path} HTTP/1.1\r\n");
        let foreign = format!("{head}Host: {host}\r\nSec-Fetch-Site: cross-site\r\n");
        assert_eq!(page.request(&foreign, "").0, 403);
    }
}

#[test]
fn a_file_that_is_no_capture_and_a_second_scenario_are_refused() {
    let desk = captured("10 kB").file("notes.pcap", "time,bytes\n0,200\n");
    for (arguments, message) in [
        ("notes.pcap", "notes.pcap: byte 0: expected pcap or pcapng"),
        ("missing.pcapng", "cannot read missing.pcapng"),
        ("upload.toml upload.toml", "upload.toml: a second path"),
        ("results/upload/lan.forward.pcapng upload.toml", "upload.toml: a second path"),
    ] {
        let done = desk.run(&format!("explore --no-browser {arguments}"));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{arguments}: {done:?}");
        assert!(done.err.contains(message), "{arguments}: {}", done.err);
    }
}

/// A capture is recognised by its first bytes, whatever its name is.
#[test]
fn a_capture_without_an_ending_is_recognised() {
    let desk = captured("10 kB");
    let folder = desk.dir.path();
    let capture = folder.join("results/upload/lan.forward.pcapng");
    std::fs::copy(capture, folder.join("upload.dump.1")).unwrap();
    let page = Page::open(&desk, "upload.dump.1");
    let subject: Value = serde_json::from_str(&page.get("api/subject").1).unwrap();
    assert_eq!(subject["capture"]["count"], 1);
}
