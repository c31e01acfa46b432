//! Routes through the network.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::Hop;

const NETWORK: &str = r#"
title = "routes"
duration = "60 s"
[node]
meter.count = 4
hub = {}
head = {}
[link]
long1 = { from = "hub", to = "head", forward.rate = "1 Mbit/s" }
access = { from = "meter", to = "hub", both.rate = "1 Mbit/s" }
down = { from = "head", to = "hub", forward.rate = "9 Mbit/s" }
second = { from = "hub", to = "head", both.rate = "1 Mbit/s" }
"#;

fn routes(flow: &str) -> (Vec<Hop>, Vec<Hop>) {
    let text = format!("{NETWORK}\n[flow]\nf = {flow}");
    let scenario = Scenario::from_toml(&text, "routes.toml").unwrap();
    let routes = scenario.routes("f").unwrap();
    (routes.forward, routes.reverse)
}

const fn hop(link: usize, forward: bool) -> Hop {
    Hop { link, forward }
}

#[test]
fn the_default_route_is_the_shortest_and_ties_follow_file_order() {
    let (forward, reverse) = routes(r#"{ from = "meter", to = "head", load = "bulk" }"#);
    assert_eq!(forward, [hop(1, true), hop(0, true)]);
    assert_eq!(reverse, [hop(2, true), hop(1, false)]);
}

#[test]
fn explicit_routes_are_used() {
    let flow = r#"{ from = "meter", to = "head", load = "bulk", route = ["access", "second"], reverse_route = ["second", "access"] }"#;
    let (forward, reverse) = routes(flow);
    assert_eq!(forward, [hop(1, true), hop(3, true)]);
    assert_eq!(reverse, [hop(3, false), hop(1, false)]);
}

#[test]
fn a_datagram_flow_needs_no_reverse_route() {
    let load = r#"load.poisson = { size = "9 B", every = "1 s" }"#;
    let (forward, reverse) =
        routes(&format!(r#"{{ from = "head", to = "meter", transport = "datagram", {load} }}"#));
    assert_eq!(forward, [hop(2, true), hop(1, false)]);
    assert_eq!(reverse, []);
}

#[test]
fn a_datagram_flow_has_a_reverse_path_if_the_links_have_one() {
    let load = r#"load.poisson = { size = "9 B", every = "1 s" }"#;
    let flow = format!(r#"{{ from = "head", to = "meter", transport = "datagram", {load} }}"#);
    let reverse_path = |network: &str| {
        let text = format!("{network}\n[flow]\nf = {flow}");
        Scenario::from_toml(&text, "routes.toml").unwrap().reverse_path("f")
    };
    assert_eq!(reverse_path(NETWORK), Some(vec![hop(1, true), hop(0, true)]));
    let access = r#"access = { from = "meter", to = "hub", both.rate"#;
    let one_way = NETWORK.replace(access, &access.replace("both", "reverse"));
    assert_eq!(reverse_path(&one_way), None);
}

#[test]
fn a_flow_has_as_many_members_as_its_group() {
    let text =
        format!("{NETWORK}\nflow.f = {{ from = \"meter\", to = \"head\", load = \"bulk\" }}");
    let scenario = Scenario::from_toml(&text, "routes.toml");
    // TOML assigns dotted keys after [link] to that table; the error names the resulting key.
    assert!(scenario.unwrap_err().to_string().contains("link.flow"));
    let text =
        format!("{NETWORK}\n[flow]\nf = {{ from = \"meter\", to = \"head\", load = \"bulk\" }}");
    let scenario = Scenario::from_toml(&text, "routes.toml").unwrap();
    assert_eq!(scenario.members("meter", "head"), Some(4));
    assert_eq!(scenario.members("hub", "head"), Some(1));
    assert_eq!(scenario.members("hub", "nowhere"), None);
}

const METERS: &str = r#"
title = "aggregators"
duration = "60 s"
[node]
meter.count = 10
head = {}
[node.collector]
count = 4
aggregator = { stack = "up" }
[link]
access = { from = "meter", to = "collector", shared = true, both.rate = "1 Mbit/s" }
wan = { from = "collector", to = "head", shared = true, both.rate = "2 Mbit/s" }
own = { from = "meter", to = "collector", both.rate = "1 Mbit/s" }
[stack.up]
"#;

#[test]
fn members_of_groups_of_different_size_are_assigned_and_shared_links_follow_the_smaller() {
    let text =
        format!("{METERS}[flow]\nf = {{ from = \"meter\", to = \"head\", load = \"bulk\" }}");
    let scenario = Scenario::from_toml(&text, "aggregators.toml").unwrap();
    assert_eq!(scenario.members("meter", "collector"), Some(10));
    let counts: Vec<_> = scenario.link.values().map(|link| scenario.link_members(link)).collect();
    assert_eq!(counts, [4, 1, 10]);
}

#[test]
fn an_aggregator_splits_a_flow_into_stages() {
    let text =
        format!("{METERS}[flow]\nf = {{ from = \"meter\", to = \"head\", load = \"bulk\" }}");
    let scenario = Scenario::from_toml(&text, "aggregators.toml").unwrap();
    let stages = scenario.stages("f").unwrap();
    let shown: Vec<_> = stages
        .iter()
        .map(|stage| (&*stage.from, &*stage.to, stage.connections, stage.stack.as_deref()))
        .collect();
    assert_eq!(shown, [("meter", "collector", 10, None), ("collector", "head", 4, Some("up"))]);
    assert_eq!(stages[0].forward, [hop(0, true)]);
    assert_eq!(stages[0].reverse, [hop(0, false)]);
    assert_eq!(stages[1].forward, [hop(1, true)]);
    assert_eq!(stages[1].reverse, [hop(1, false)]);
}

#[test]
fn the_reverse_path_must_traverse_the_aggregators() {
    let text = format!(
        "{METERS}[link.down]\nfrom = \"head\"\nto = \"meter\"\nforward.rate = \"1 Mbit/s\"\n\
         [flow]\nf = {{ from = \"meter\", to = \"head\", load = \"bulk\" }}"
    );
    let error = Scenario::from_toml(&text, "aggregators.toml").unwrap_err().to_string();
    assert!(error.contains("flow.f.reverse_route"), "{error}");
}
