//! GraphML (graphml.graphdrawing.org).

use std::collections::BTreeMap;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{Attributes, Edge, File, Graph, ImportError, Node};

/// Reads nodes, edges and their data.
pub(super) fn read(file: File<'_>) -> Result<Graph, ImportError> {
    let mut reader = Reader::from_str(file.text);
    let (graph, names) = (Graph::default(), BTreeMap::new());
    let mut parser = Parser { file, graph, names, element: None, data: None };
    loop {
        let place = format!("byte {}", reader.buffer_position());
        match reader.read_event() {
            Ok(Event::Start(start)) => parser.open(&start, &place, false)?,
            Ok(Event::Empty(start)) => parser.open(&start, &place, true)?,
            Ok(Event::Text(text)) => {
                if let Some(Data { text: value, .. }) = &mut parser.data {
                    value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
                }
            }
            Ok(Event::End(end)) => match end.local_name().as_ref() {
                "data" => parser.close_data(),
                "node" | "edge" => parser.element = None,
                _ => {}
            },
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                return Err(file.error(
                    &place,
                    format!("expected XML: {error}"),
                    "repair the file",
                ));
            }
        }
    }
    if parser.graph.nodes.is_empty() {
        let help = "give a file of GraphML with <node> and <edge>";
        return Err(file.error("graphml.graph", "the file has no nodes", help));
    }
    Ok(parser.graph)
}

struct Parser<'a> {
    file: File<'a>,
    graph: Graph,
    /// Names of the keys.
    names: BTreeMap<String, String>,
    /// The element to which data belongs; `None` in the graph itself.
    element: Option<Element>,
    /// Key and text of the current data element.
    data: Option<Data>,
}

/// The last node, or the last edge.
#[derive(Clone, Copy)]
enum Element {
    Node,
    Edge,
}

struct Data {
    key: String,
    text: String,
}

impl Parser<'_> {
    fn open(
        &mut self,
        start: &BytesStart<'_>,
        place: &str,
        is_empty: bool,
    ) -> Result<(), ImportError> {
        let file = self.file;
        let attribute = |name: &str| {
            let found = start.try_get_attribute(name).ok().flatten()?;
            Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
        };
        let required = |name: &str| {
            attribute(name).ok_or_else(|| {
                let message = format!("an element without its attribute {name:?}");
                file.error(place, message, "give a file of GraphML")
            })
        };
        match start.local_name().as_ref() {
            "key" => {
                let name = attribute("attr.name").unwrap_or_default().to_ascii_lowercase();
                self.names.insert(required("id")?, name);
            }
            "node" => {
                let id = required("id")?;
                self.graph.nodes.push(Node { id, attributes: Attributes::new() });
                self.element = (!is_empty).then_some(Element::Node);
            }
            "edge" => {
                let (source, target) = (required("source")?, required("target")?);
                let place = place.to_owned();
                let attributes = Attributes::new();
                self.graph.edges.push(Edge { source, target, attributes, place });
                self.element = (!is_empty).then_some(Element::Edge);
            }
            "data" if !is_empty => {
                self.data = Some(Data { key: required("key")?, text: String::new() });
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the text of a data element to its node or edge.
    fn close_data(&mut self) {
        let Some(Data { key, text }) = self.data.take() else { return };
        let Some(name) = self.names.get(&key).filter(|name| !name.is_empty()) else { return };
        let attributes = match self.element {
            Some(Element::Node) => self.graph.nodes.last_mut().map(|node| &mut node.attributes),
            Some(Element::Edge) => self.graph.edges.last_mut().map(|edge| &mut edge.attributes),
            None => None,
        };
        if let Some(attributes) = attributes {
            attributes.insert(name.clone(), text.trim().to_owned());
        }
    }
}
