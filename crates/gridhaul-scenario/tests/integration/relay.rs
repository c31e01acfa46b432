//! Configurations of the relay: reading, writing, and messages about errors.

use gridhaul_scenario::RelayConfig;

const COLLECTOR: &str = r#"
name = "substation-12"
log.folder = "/var/lib/gridhaul"
[collector]
upstream = "127.0.0.1:7070"
[collector.listener.dlms]
address = "0.0.0.0:4059"
framing = "dlms_wrapper"
[collector.listener.serial]
address = "0.0.0.0:4060"
framing.idle_gap = "20 ms"
"#;

const HEAD: &str = r#"
name = "head"
log.folder = "log"
[head]
address = "127.0.0.1:7070"
deliver.file = "messages.jsonl"
"#;

const SPLIT: &str = r#"
name = "split"
[split]
connections = 5000
client.receive_buffer = "64 kB"
server.congestion_control = "reno"
server.delayed_ack = "0 s"
idle_timeout = "10 min"
[split.listener.meters]
address = "0.0.0.0:4059"
upstream = "server.example:4059"
connect_first = true
[split.listener.any]
address = "0.0.0.0:4060"
transparent = true
"#;

const ROUTER: &str = r#"
name = "terminal"
[router]
address = "10.9.0.2"
peer = "10.9.0.1"
destinations = ["0.0.0.0/0", "fd09::/32"]
except = ["192.168.0.0/16"]
[router.link.gprs]
device = "gprs0"
gateway = ["192.0.2.1", "fe80::1"]
probe_size = "1500 B"
[router.link.gprs.shaper]
rate = "22 kbit/s"
share.acks = { packets = { acknowledgements = true }, guarantee = "10 kbit/s" }
[router.link.dvbt]
device = "eth0.7"
[router.class.web]
packets = { opened_by = "peer", protocol = "tcp", ports = [80, 443], to = ["10.0.0.0/8"] }
links = ["dvbt"]
"#;

const BRIDGE: &str = r#"
name = "regenerator-1"
management.address = "127.0.0.1:9180"
[bridge]
interfaces = ["eth0", "eth1"]
fail_open = false
memory = "64 MB"
[bridge.rule.web]
mode = "none"
ports = [80, "8000-8080"]
[bridge.rule.meters]
mode = "reflect"
opened_from = "eth0"
clients = ["10.0.0.0/8", "2001:db8::/32"]
buffer = "256 KiB"
congestion_control = "reno"
[bridge.rule.wireless]
mode = "snoop"
toward = "eth1"
"#;

const BROKER: &str = r#"
name = "head"
log.folder = "log"
drain_limit = "2 s"
user = "gridhaul"
group = "gridhaul"
management.address = "127.0.0.1:9181"
[management.tls]
address = "0.0.0.0:9443"
certificate = "head.pem"
key = "head.key"
client_authorities = "operators.pem"
[head]
address = "127.0.0.1:7070"
[head.deliver.mqtt]
broker = "127.0.0.1:1883"
topic = "meters/{certificate}/{meter}"
payload = "data"
"#;

fn error(text: &str) -> String {
    RelayConfig::from_toml(text, "relay.toml").unwrap_err().to_string()
}

#[test]
fn configurations_read_back() {
    for text in [COLLECTOR, HEAD, SPLIT, BROKER, ROUTER, BRIDGE] {
        let config = RelayConfig::from_toml(text, "relay.toml").unwrap();
        let merged = config.to_toml();
        assert_eq!(RelayConfig::from_toml(&merged, "merged.toml").unwrap(), config, "{merged}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_a_suggestion() {
    let text = COLLECTOR.replace("upstream", "upstraem");
    let error = error(&text);
    assert!(error.contains("relay.toml:5:1: collector.upstraem"), "{error}");
    assert!(error.contains("did you mean `upstream`?"), "{error}");
}

#[test]
fn the_former_name_of_a_section_is_refused_with_the_new_one() {
    let error = error(&COLLECTOR.replace("[collector", "[aggregate"));
    assert!(error.contains("relay.toml:4:2: aggregate: there is no key `aggregate`"), "{error}");
    assert!(error.contains("help: the key is `collector` now: rename it"), "{error}");
}

#[test]
fn inconsistent_values_are_reported_together() {
    let text = COLLECTOR
        .replace("log.folder = \"/var/lib/gridhaul\"", "management.address = \"10.0.0.1:80\"")
        .replace("127.0.0.1:7070", "head.example:7070")
        .replace("0.0.0.0:4060", "everywhere");
    let error = error(&text);
    for expected in [
        "collector.tier: the tier \"local\" needs a log",
        "10.0.0.1 is not a loopback address",
        "leaves this machine, and there is no [collector.tls]",
        "insecure = true",
        "expected an IP address with a port, found \"everywhere\"",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

/// The kernel would choose a port, which no collector, meter or user would learn.
#[test]
fn port_0_is_refused() {
    let management = "name = \"c\"\nmanagement.address = \"127.0.0.1:0\"";
    for (text, key) in [
        (HEAD.replace("127.0.0.1:7070", "127.0.0.1:0"), "head.address"),
        (COLLECTOR.replace("0.0.0.0:4059", "0.0.0.0:0"), "collector.listener.dlms.address"),
        (SPLIT.replace("0.0.0.0:4059", "[::]:0"), "split.listener.meters.address"),
        (SPLIT.replace("name = \"split\"", management), "management.address"),
    ] {
        let error = error(&text);
        assert!(error.contains(&format!("{key}: the port cannot be 0")), "{error}");
        assert!(error.contains("help: write for example \"0.0.0.0:4059\""), "{error}");
    }
}

#[test]
fn a_limit_of_zero_connections_is_refused() {
    for key in ["meters", "connections_per_source"] {
        let text = COLLECTOR.replace("[collector]\n", &format!("[collector]\n{key} = 0\n"));
        let expected = format!("collector.{key}: no meter could connect");
        assert!(error(&text).contains(&expected), "{key}");
    }
}

/// A collector whose data is acknowledged when it is durable.
fn durable() -> String {
    let text = COLLECTOR.replace("[collector]\n", "[collector]\ntun = \"gridhaul0\"\n");
    let text = text.replace("0.0.0.0:40", "192.0.2.10:40");
    text.replace("\nframing", "\nack = \"durable\"\nframing")
}

#[test]
fn durable_acknowledgements_read_back() {
    let config = RelayConfig::from_toml(&durable(), "relay.toml").unwrap();
    assert!(config.collector.as_ref().unwrap().listener["dlms"].is_durable());
    assert_eq!(RelayConfig::from_toml(&config.to_toml(), "merged.toml").unwrap(), config);
}

#[test]
fn keys_that_contradict_durable_acknowledgements_are_refused() {
    for (before, after, expected) in [
        ("tun = \"gridhaul0\"", "", "dlms.ack: packets of the meters need a TUN device"),
        ("gridhaul0", "a-name-that-is-long", "tun: expected the name of a network device"),
        ("ack = \"durable\"", "", "collector.tun: no listener uses the device"),
        ("192.0.2.10:4059", "0.0.0.0:4059", "dlms.address: with ack = \"durable\", expected an"),
        ("192.0.2.10:4059", "192.0.2.10:0", "dlms.address: the port cannot be 0"),
        ("20 ms", "1 s", "serial.framing.idle_gap: with ack = \"durable\", 1 s is longer than"),
        ("tun =", "tier = \"memory\"\ntun =", "dlms.ack: only with the tier \"local\""),
        ("tun =", "receive_buffer = \"2 kB\"\ntun =", "receive_buffer: 2 kB is less than two"),
        ("4059\"\n", "4059\"\nproxy_protocol = true\n", "dlms.proxy_protocol: with ack"),
        (
            "4059\"\n",
            "4059\"\ntls = { certificate = \"a\", key = \"b\" }\n",
            "dlms.tls: with ack = \"durable\", TLS is not possible",
        ),
    ] {
        let error = error(&durable().replace(before, after));
        assert!(error.contains(expected) && error.contains("help: "), "{expected}\n{error}");
    }
}

#[test]
fn a_relay_without_a_task_is_refused() {
    assert!(error("name = \"relay\"").contains("the relay has no task"));
    assert!(error(&HEAD.replace("log.folder = \"log\"", "")).contains("a head needs a log"));
    assert!(error(&HEAD.replace("head\"", "not a name\"")).contains("is not a name"));
    let delimiter = COLLECTOR.replace("idle_gap = \"20 ms\"", "delimiter.byte = 300");
    assert!(error(&delimiter).contains("expected a whole number from 0 to 255, found `300`"));
}

#[test]
fn inconsistent_values_of_a_bridge_are_reported_together() {
    let text = BRIDGE
        .replace("\"eth1\"]", "\"eth0\"]\nconnections = 0\nidle_timeout = \"0 s\"")
        .replace("256 KiB", "1 kB")
        .replace("10.0.0.0/8", "10.0.0.0/33")
        .replace("name = \"regenerator-1\"", "name = \"r\"\nuser = \"gridhaul\"");
    let error = error(&text);
    for expected in [
        "bridge.interfaces: \"eth0\" cannot be connected with itself",
        "bridge.connections: no connection could pass a proxy",
        "bridge.idle_timeout: the time is zero",
        "bridge.rule.meters.buffer: 1 kB is not between 2560 B and 1 GiB",
        "bridge.rule.meters.clients: expected an IP prefix, found \"10.0.0.0/33\"",
        "bridge.rule.wireless.toward: \"eth1\" is not an interface of the bridge",
        "user: a bridge needs its rights while it runs",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    let error = self::error(&BRIDGE.replace("toward = \"eth1\"", "max_ack_delay = \"1 ms\""));
    assert!(error.contains("the mode \"snoop\" serves one hop"), "{error}");
    assert!(error.contains("help: add toward with the interface of the lossy hop"), "{error}");
    assert!(
        error.contains("max_ack_delay: the key has no effect in the mode \"snoop\""),
        "{error}"
    );
    let error = self::error(&BRIDGE.replace("\"8000-8080\"", "\"8080-8000\""));
    assert!(error.contains("expected a port such as 4059, or a range"), "{error}");
    let error = self::error(&BRIDGE.replace("\"8000-8080\"", "0"));
    assert!(error.contains("expected a port such as 4059"), "{error}");
    assert!(!error.contains("write the unit"), "a port has no unit: {error}");
}

#[test]
fn inconsistent_values_of_a_split_proxy_are_reported_together() {
    let text = SPLIT
        .replace(
            "connections = 5000",
            "connections = 0\nmemory = \"1 kB\"\nconnect_timeout = \"0 s\"",
        )
        .replace("\"64 kB\"", "\"1 B\"\nclient.mss = 40")
        .replace("server.example:4059", "server.example")
        .replace("transparent = true", "transparent = true\nconnect_first = true")
        .replace(
            "name = \"split\"",
            "name = \"split\"\nhead.address = \"127.0.0.1:1\"\nhead.deliver.file = \"f\"",
        );
    let error = error(&text);
    for expected in [
        "a relay has one task",
        "split.connections: the relay would accept no client",
        "split.memory",
        "split.connect_timeout: the time is zero",
        "help: a usual value is \"10 s\"",
        "split.client.receive_buffer",
        "split.client.mss: 40 is not between 88 and 32767",
        "split.listener.meters.upstream: expected an address with a port",
        "split.listener.any.connect_first: the servers of a transparent proxy are not known",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    let error = self::error(&SPLIT.replace("transparent = true", ""));
    assert!(error.contains("split.listener.any.upstream: there is no server"), "{error}");
}

#[test]
fn inconsistent_values_of_a_router_are_reported_together() {
    let text = ROUTER
        .replace("name = \"terminal\"", "name = \"terminal\"\nuser = \"gridhaul\"")
        .replace("peer = \"10.9.0.1\"", "peer = \"10.9.0.2\"\nhold_time = \"0 s\"\ntable = 254")
        .replace("\"192.168.0.0/16\"", "\"192.168.0.0/33\"")
        .replace("\"fe80::1\"", "\"192.0.2.2\"")
        .replace("guarantee = \"10 kbit/s\"", "guarantee = \"30 kbit/s\", limit = \"1 kbit/s\"")
        .replace("\"eth0.7\"", "\"a device\"\nprobe_interval = \"1 s\"\nprobe_size = \"40 B\"")
        .replace("protocol = \"tcp\"", "from = [\"::/0\"]")
        .replace("[\"dvbt\"]", "[\"dvbt\", \"dvbt\", \"lte\"]");
    let text = format!("{text}[router.class.all]\nlinks = []\npackets = {{}}\n");
    let error = RelayConfig::from_toml(&text, "relay.toml").unwrap_err();
    let found: Vec<_> = error
        .diagnostics
        .iter()
        .map(|diagnostic| format!("{}: {}", diagnostic.key, diagnostic.message))
        .collect();
    for expected in [
        "user: a hybrid router changes routes and filters as long as it runs",
        "router.peer: the peer is this router",
        "router.hold_time: 0 s is not between 1 s and 10 min",
        "router.table: 254 is not between 256 and 32000",
        "router.except: expected an IP prefix, found \"192.168.0.0/33\"",
        "router.link.gprs.gateway: there is more than one next hop for a version of IP",
        "router.link.gprs.shaper.share: the guarantees exceed the rate of 22 kbit/s",
        "router.link.gprs.shaper.share.acks.limit: expected a rate from 30 kbit/s to 22 kbit/s",
        "router.link.dvbt.device: \"a device\" is not the name of a network device",
        "router.link.dvbt.probe_interval: 1 s is not between 20 ms and a fifth of detection_time \
         (200 ms)",
        "router.link.dvbt.probe_size: 40 B is not between 296 B and 9000 B",
        "router.class.web.packets.ports: ports need a protocol that has ports",
        "router.class.web.packets.to: no packet has a source and a destination of different \
         versions of IP",
        "router.class.web.links: \"dvbt\" is named twice",
        "router.class.web.links: there is no link \"lte\"",
        "router.class.all.links: there is no link",
        "router.class.all.packets: all packets match",
    ] {
        assert!(found.iter().any(|line| line == expected), "{expected}\n{found:#?}");
    }
    let short = ROUTER.replace("[router]", "[router]\ndetection_time = \"500 ms\"");
    let error = self::error(&short);
    assert!(error.contains("200 ms is not between 20 ms and a fifth of detection_time"), "{error}");
    assert!(error.contains("help: write \"100 ms\"; for a link that carries fewer"), "{error}");
    let nothing = ROUTER
        .replace("rate = \"22 kbit/s\"", "rate = \"0 bit/s\"\nqueue = \"0 packets\"")
        .replace("guarantee = \"10 kbit/s\"", "guarantee = \"0 bit/s\"");
    let error = self::error(&nothing);
    for (key, message) in [
        ("rate", "no packet could be sent"),
        ("queue", "no packet could be sent"),
        ("share.acks.guarantee", "no rate is guaranteed"),
    ] {
        let expected = format!("router.link.gprs.shaper.{key}: {message}");
        assert!(error.contains(&expected), "{expected}\n{error}");
    }
    let one_link = ROUTER.replace("[router.link.dvbt]\ndevice = \"eth0.7\"", "");
    assert!(self::error(&one_link).contains("router.link: expected 2 to 8 links, found 1"));
}

#[test]
fn inconsistent_values_of_a_delivery_to_a_broker_are_reported_together() {
    let text = BROKER
        .replace("user = \"gridhaul\"\n", "")
        .replace("127.0.0.1:1883", "broker.example:1883")
        .replace("{certificate}", "{address}")
        .replace("payload = \"data\"", "in_flight = 0\npassword_file = \"secret\"");
    let error = error(&text);
    for expected in [
        "group: a group needs a user",
        "head.deliver.mqtt.broker: the connection to the broker leaves this machine, and has no \
         TLS",
        "head.deliver.mqtt.topic: there is no field {address}",
        "the fields are {collector}, {listener}, {meter}, {certificate} and {peer}",
        "head.deliver.mqtt.in_flight: no message could be sent",
        "head.deliver.mqtt.password_file: a password needs a user name",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    for topic in ["", "meters/+", "meters/#", "$SYS/meters"] {
        let text = BROKER.replace("meters/{certificate}/{meter}", topic);
        let error = self::error(&text);
        assert!(error.contains("is not a topic to which a message can be published"), "{error}");
    }
}

#[test]
fn a_listener_that_is_opened_later_needs_a_port_that_any_user_may_use() {
    let text = SPLIT.replace("name = \"split\"", "name = \"split\"\nuser = \"gridhaul\"");
    assert!(RelayConfig::from_toml(&text, "relay.toml").is_ok());
    let error = error(&text.replace("0.0.0.0:4059", "0.0.0.0:443"));
    assert!(error.contains("split.listener.meters.connect_first"), "{error}");
}

#[test]
fn a_relay_that_would_connect_to_itself_is_refused() {
    let own = COLLECTOR.replace("127.0.0.1:7070", "127.0.0.1:4060");
    let expected = "collector.upstream: the relay would connect to itself: 127.0.0.1:4060 reaches \
                    collector.listener.serial.address (0.0.0.0:4060)";
    assert!(error(&own).contains(expected), "{}", error(&own));
    for server in ["0.0.0.0:4059", "localhost:4059", "127.8.8.8:4059"] {
        let error = error(&SPLIT.replace("server.example:4059", server));
        let expected = format!(
            "split.listener.meters.upstream: connections would return to this relay without end: \
             {server}"
        );
        assert!(error.contains(&expected), "{error}");
    }
    // A chain of two listeners that ends at a server is no loop; one that returns is.
    let second = "[split.listener.second]\naddress = \"127.0.0.1:5000\"\nupstream = ";
    let chain = SPLIT.replace("server.example:4059", "127.0.0.1:5000");
    let open = format!("{chain}{second}\"server.example:4059\"");
    assert!(RelayConfig::from_toml(&open, "relay.toml").is_ok());
    let error_of_loop = error(&format!("{chain}{second}\"127.0.0.1:4059\""));
    for name in ["meters", "second"] {
        assert!(error_of_loop.contains(&format!("split.listener.{name}.upstream: connections")));
    }
    let head = HEAD
        .replace("deliver.file = \"messages.jsonl\"", "deliver.tcp.server = \"127.0.0.1:7070\"");
    assert!(error(&head).contains("head.deliver.tcp.server: the relay would connect to itself"));
    // Addresses of this machine are known where the relay runs.
    let far = RelayConfig::from_toml(
        &COLLECTOR
            .replace("127.0.0.1:7070", "192.0.2.9:4060")
            .replace("[collector]", "insecure = true\n[collector]"),
        "relay.toml",
    )
    .unwrap();
    assert_eq!(far.loops(&|_| false), []);
    assert_eq!(far.loops(&|ip| ip.to_string() == "192.0.2.9").len(), 1);
}

#[test]
fn an_address_that_is_used_twice_is_refused() {
    let text = COLLECTOR.replace("0.0.0.0:4060", "127.0.0.1:4059");
    let expected = "collector.listener.serial.address: 127.0.0.1:4059 is in use by \
        collector.listener.dlms.address";
    assert!(error(&text).contains(expected), "{}", error(&text));
}

#[test]
fn a_prefix_of_mapped_addresses_that_is_not_one_of_ipv4_is_refused() {
    let allow = |prefix: &str| {
        COLLECTOR.replace("framing.idle_gap", &format!("allow = [\"{prefix}\"]\nframing.idle_gap"))
    };
    for prefix in ["::ffff:127.0.0.0/104", "10.0.0.1/8", "::/0"] {
        assert!(RelayConfig::from_toml(&allow(prefix), "relay.toml").is_ok(), "{prefix}");
    }
    let error = error(&allow("::ffff:127.0.0.0/95"));
    assert!(error.contains("allow: expected an IPv4 prefix in the place of IPv6"), "{error}");
}

#[test]
fn a_length_field_that_cannot_be_is_refused() {
    let framing = |keys: &str| {
        COLLECTOR.replace("idle_gap = \"20 ms\"", &format!("length_field = {{ {keys} }}"))
    };
    let valid =
        framing("offset = 4, size = 2, order = \"little_endian\", adds = 6, maximum = \"260 B\"");
    let config = RelayConfig::from_toml(&valid, "relay.toml").unwrap();
    assert_eq!(RelayConfig::from_toml(&config.to_toml(), "merged.toml").unwrap(), config);
    for (keys, expected) in [
        ("offset = 4, size = 5", "length_field.size: expected 1 to 4 bytes, found 5"),
        ("offset = 4, size = 0", "length_field.size: expected 1 to 4 bytes, found 0"),
        ("offset = 4, size = 2, maximum = \"5 B\"", "the length field ends after 6 bytes"),
        ("offset = 65535, size = 2", "the length field ends after 65537 bytes"),
    ] {
        let error = error(&framing(keys));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_rotation_needs_a_file_a_size_and_older_files() {
    let head = |deliver: &str, rotate: &str| {
        format!(
            "name = \"head\"\nlog.folder = \"log\"\n[head]\n\
             address = \"127.0.0.1:7070\"\n{deliver}\n\
             rotate = {rotate}\n"
        )
    };
    let file = "deliver.file = \"messages.jsonl\"";
    let valid = head(file, "{ size = \"100 MB\", keep = 10 }");
    let config = RelayConfig::from_toml(&valid, "relay.toml").unwrap();
    assert_eq!(RelayConfig::from_toml(&config.to_toml(), "relay.toml").unwrap(), config);
    let tcp = head("deliver.tcp.server = \"192.0.2.1:4059\"", "{ size = \"9 kB\", keep = 0 }");
    let text = error(&tcp);
    for expected in [
        "head.rotate: only the file of deliver.file can be rotated",
        "head.rotate.size: expected at least 1 MB",
        "head.rotate.keep: expected at least 1",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}
