//! The scenario of a topology, as TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::str::FromStr;

use gridhaul_scenario::units::{BitRate, Duration};

use super::{Attributes, Edge, File, Graph, ImportError, Node, Options};

/// Names of attributes with a rate, in the order of preference. Internet Topology Zoo has
/// `LinkSpeedRaw` in bit/s.
const RATES: [(&str, Option<&str>); 8] = [
    ("rate", None),
    ("bandwidth", None),
    ("capacity", None),
    ("rate_bit_per_s", Some("bit/s")),
    ("bandwidth_bps", Some("bit/s")),
    ("linkspeedraw", Some("bit/s")),
    ("datarate", None),
    ("speed", None),
];

/// Names of attributes with a delay.
const DELAYS: [(&str, Option<&str>); 6] = [
    ("delay", None),
    ("latency", None),
    ("delay_s", Some("s")),
    ("delay_ms", Some("ms")),
    ("latency_ms", Some("ms")),
    ("latency_s", Some("s")),
];

/// Seconds for a metre of fibre or cable: 5 µs/km, two thirds of the speed of light.
const SECONDS_PER_METRE: f64 = 5e-9;

pub(super) fn write(
    file: File<'_>,
    graph: &Graph,
    options: &Options,
) -> Result<String, ImportError> {
    let names = names(file, &graph.nodes)?;
    let centre = centre(file, graph, options)?;
    let mut links = String::new();
    let mut seen = BTreeSet::new();
    let mut link_names = BTreeSet::new();
    let mut skipped = 0;
    for edge in &graph.edges {
        let end = |id: &String| {
            names.get(id).ok_or_else(|| {
                let message = format!("the link has node {id:?}, which does not exist");
                file.error(&edge.place, message, "add the node, or remove the link")
            })
        };
        let (from, to) = (end(&edge.source)?, end(&edge.target)?);
        // A link of gridhaul has both directions; parallel links are not told apart.
        if from == to || !seen.insert((from.min(to), from.max(to))) {
            skipped += 1;
            continue;
        }
        let (rate, rate_source) = rate(file, edge, options)?;
        let (delay, delay_source) = delay(file, edge, graph, options)?;
        // Nodes `a-b` and `c` have the link `a-b-c`, and so have `a` and `b-c`.
        let mut name = format!("{from}-{to}");
        if !link_names.insert(name.clone()) {
            name = format!("link-{}", link_names.len() + 1);
            link_names.insert(name.clone());
        }
        let _ = write!(
            links,
            "\n[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\n\n[link.{name}.both]\n\
             # {rate_source}\nrate = \"{rate}\"\n# {delay_source}\ndelay = \"{delay}\"\n"
        );
    }
    let centre = &names[centre];
    let mut text = format!(
        "# Imported from {}: {} nodes, {} links{}. The flows are an example: each node reports to\n\
         # {centre}, by the path with the fewest links.\ntitle = {}\nduration = \"60 s\"\n\n\
         [node]\n",
        file.name,
        graph.nodes.len(),
        seen.len(),
        if skipped > 0 {
            format!(" ({skipped} loops and parallel links omitted)")
        } else {
            String::new()
        },
        toml::Value::from(format!("Topology of {}", file.name)),
    );
    for node in &graph.nodes {
        let _ = writeln!(text, "{} = {{}}{}", names[&node.id], comment(node, &names[&node.id]));
    }
    text.push_str(&links);
    for from in connected(graph, &names, centre) {
        let _ = write!(
            text,
            "\n[flow.{from}]\nfrom = \"{from}\"\nto = \"{centre}\"\n\
             load = {{ periodic = {{ size = \"{}\", every = \"{}\" }} }}\n",
            options.size, options.every
        );
    }
    Ok(text)
}

/// The name of the file, where it differs.
fn comment(node: &Node, name: &str) -> String {
    let label = node.attributes.get("label").or(node.attributes.get("name")).unwrap_or(&node.id);
    let label: String = label.chars().filter(|letter| !letter.is_control()).collect();
    if label == name { String::new() } else { format!(" # {label}") }
}

/// Names of nodes: letters, digits and hyphens of their identifiers.
fn names(file: File<'_>, nodes: &[Node]) -> Result<BTreeMap<String, String>, ImportError> {
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for node in nodes {
        let plain: String = node
            .id
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .collect();
        let mut name = plain.trim_matches('-').to_owned();
        if name.is_empty() || !taken.insert(name.clone()) {
            name = format!("node-{}", names.len() + 1);
            taken.insert(name.clone());
        }
        if names.insert(node.id.clone(), name).is_some() {
            let message = format!("two nodes have the id {:?}", node.id);
            return Err(file.error("nodes", message, "give each node an id of its own"));
        }
    }
    Ok(names)
}

/// The id of the node to which all others send.
fn centre<'a>(
    file: File<'_>,
    graph: &'a Graph,
    options: &Options,
) -> Result<&'a String, ImportError> {
    if let Some(wanted) = &options.centre {
        let found = graph.nodes.iter().find(|node| {
            node.id == *wanted || node.attributes.get("label").is_some_and(|label| label == wanted)
        });
        return found.map(|node| &node.id).ok_or_else(|| {
            file.error(
                "nodes",
                format!("no node {wanted:?}"),
                "give the id of a node with --centre",
            )
        });
    }
    let degree = |id: &String| {
        graph.edges.iter().filter(|edge| edge.source == *id || edge.target == *id).count()
    };
    // Of equal degrees, the first node.
    let most = graph.nodes.iter().rev().max_by_key(|node| degree(&node.id));
    let help = "give a topology with at least two nodes";
    most.map(|node| &node.id).ok_or_else(|| file.error("nodes", "the topology is empty", help))
}

/// Names of the nodes that have a path to the centre, without it.
fn connected<'a>(
    graph: &Graph,
    names: &'a BTreeMap<String, String>,
    centre: &str,
) -> BTreeSet<&'a str> {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut next = vec![centre.to_owned()];
    while let Some(name) = next.pop() {
        for edge in &graph.edges {
            let ends = [&names[&edge.source], &names[&edge.target]];
            for (near, far) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                if *near == name && far != centre && reached.insert(far) {
                    next.push(far.clone());
                }
            }
        }
    }
    reached
}

fn rate(file: File<'_>, edge: &Edge, options: &Options) -> Result<(BitRate, String), ImportError> {
    let found = attribute(&edge.attributes, &RATES);
    let Some((name, text, unit)) = found else {
        return Ok((options.rate, "the option --rate".to_owned()));
    };
    let unit = unit.or(options.rate_unit.as_deref());
    let rate = parse::<BitRate>(text, unit).ok_or_else(|| {
        let message = format!("{name}: expected a rate such as \"40 Mbit/s\", found {text:?}");
        file.error(&edge.place, message, "give the unit of the numbers with --rate-unit 'Mbit/s'")
    })?;
    Ok((rate, format!("{name} = {text}")))
}

fn delay(
    file: File<'_>,
    edge: &Edge,
    graph: &Graph,
    options: &Options,
) -> Result<(Duration, String), ImportError> {
    if let Some((name, text, unit)) = attribute(&edge.attributes, &DELAYS) {
        let unit = unit.or(options.delay_unit.as_deref());
        let delay = parse::<Duration>(text, unit).ok_or_else(|| {
            let message = format!("{name}: expected a time such as \"3 ms\", found {text:?}");
            file.error(&edge.place, message, "give the unit of the numbers with --delay-unit ms")
        })?;
        return Ok((delay, format!("{name} = {text}")));
    }
    let place = |id: &String| {
        let node = graph.nodes.iter().find(|node| node.id == *id)?;
        let number = |name: &str| node.attributes.get(name)?.parse::<f64>().ok();
        Some(Coordinates { latitude: number("latitude")?, longitude: number("longitude")? })
    };
    let metres = place(&edge.source).zip(place(&edge.target)).map(|(a, b)| great_circle(a, b));
    Ok(match metres {
        Some(metres) => (
            Duration::from_micros((metres * SECONDS_PER_METRE * 1e6).round() as u64),
            format!("{:.0} km between the coordinates, 5 us/km", metres / 1e3),
        ),
        None => (options.delay, "the option --delay".to_owned()),
    })
}

/// The first attribute of these names: name, value and unit.
fn attribute<'a>(
    attributes: &'a Attributes,
    names: &[(&'a str, Option<&'static str>)],
) -> Option<(&'a str, &'a str, Option<&'static str>)> {
    names.iter().find_map(|&(name, unit)| {
        attributes.get(name).filter(|text| !text.is_empty()).map(|text| (name, text.as_str(), unit))
    })
}

/// A quantity with its unit, or a number of this unit.
fn parse<T: FromStr>(text: &str, unit: Option<&str>) -> Option<T> {
    if text.parse::<f64>().is_err() {
        return text.parse().ok();
    }
    // No exponent and no sign, which quantities do not have.
    let number: f64 = text.parse().ok().filter(|number| *number >= 0.0)?;
    format!("{number} {}", unit?).parse().ok()
}

/// A place on the earth, in degrees.
#[derive(Debug, Clone, Copy)]
struct Coordinates {
    latitude: f64,
    longitude: f64,
}

/// Metres between two places on a sphere (haversine formula).
fn great_circle(a: Coordinates, b: Coordinates) -> f64 {
    const RADIUS: f64 = 6_371_000.0;
    let [north_a, north_b] = [a.latitude, b.latitude].map(f64::to_radians);
    let east = (b.longitude - a.longitude).to_radians();
    let half = |angle: f64| (angle / 2.0).sin().powi(2);
    let chord = half(north_b - north_a) + north_a.cos() * north_b.cos() * half(east);
    2.0 * RADIUS * chord.sqrt().min(1.0).asin()
}
