//! Node-link JSON, as `networkx.node_link_data` writes it.

use serde_json::{Map, Value};

use super::{Attributes, Edge, File, Graph, ImportError, Node};

pub(super) fn read(file: File<'_>) -> Result<Graph, ImportError> {
    let help = "write it with networkx: json.dumps(nx.node_link_data(graph))";
    let root: Value = serde_json::from_str(file.text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        file.error(&place, format!("expected JSON: {error}"), help)
    })?;
    let list = |key: &str| root[key].as_array();
    let nodes = list("nodes").ok_or_else(|| file.error("nodes", "expected a list", help))?;
    // NetworkX has named the list `links` before 3.4, and `edges` since.
    let key = if root.get("edges").is_some() { "edges" } else { "links" };
    let edges = list(key).ok_or_else(|| file.error("edges", "expected a list", help))?;
    let mut graph = Graph::default();
    for (index, node) in nodes.iter().enumerate() {
        let place = format!("nodes[{index}]");
        let object = object(file, node, &place, help)?;
        let id = text(object.get("id").or(object.get("name"))).ok_or_else(|| {
            file.error(&format!("{place}.id"), "expected a text or a number", help)
        })?;
        graph.nodes.push(Node { id, attributes: attributes(object) });
    }
    for (index, edge) in edges.iter().enumerate() {
        let place = format!("{key}[{index}]");
        let object = object(file, edge, &place, help)?;
        let end = |name: &str| {
            text(object.get(name)).ok_or_else(|| {
                file.error(&format!("{place}.{name}"), "expected the id of a node", help)
            })
        };
        let (source, target) = (end("source")?, end("target")?);
        graph.edges.push(Edge { source, target, attributes: attributes(object), place });
    }
    Ok(graph)
}

fn object<'a>(
    file: File<'_>,
    value: &'a Value,
    place: &str,
    help: &str,
) -> Result<&'a Map<String, Value>, ImportError> {
    value.as_object().ok_or_else(|| file.error(place, "expected an object", help))
}

fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn attributes(object: &Map<String, Value>) -> Attributes {
    let texts = object
        .iter()
        .filter_map(|(key, value)| text(Some(value)).map(|text| (key.to_ascii_lowercase(), text)));
    texts.collect()
}
