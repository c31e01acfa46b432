//! A rendered chart: as a file, as an element of a page, or as a panel.

use svg::node::element::Style;
use svg::{Document, Node};

use super::style::STYLE;
use super::svg_primitives::px;

/// SVG elements with their size, without style sheet.
pub(super) struct Drawing {
    pub(super) document: Document,
    pub(super) height: f64,
}

impl Drawing {
    /// A standalone file, style sheet included.
    pub(super) fn standalone(mut self) -> String {
        if let Some(children) = Node::get_children_mut(&mut self.document) {
            children.insert(0, Style::new(STYLE).into());
        }
        self.document.to_string()
    }

    /// An element for an HTML page with the style sheet, which needs no namespace.
    pub(super) fn inline(self) -> String {
        self.without_namespace().document.to_string()
    }

    /// The drawing as a part of another one, with its upper left corner at (x, y).
    pub(super) fn panel(self, x: f64, y: f64) -> Document {
        self.without_namespace().document.set("x", px(x)).set("y", px(y))
    }

    fn without_namespace(mut self) -> Self {
        if let Some(attributes) = Node::get_attributes_mut(&mut self.document) {
            attributes.remove("xmlns");
        }
        self
    }
}
