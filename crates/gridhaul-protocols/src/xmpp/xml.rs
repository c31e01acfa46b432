//! XML streams: their elements in input of any pieces, and one element as a tree.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Elements inside each other, with the stream. A stanza of this client has three levels.
const DEPTH_MAX: usize = 32;

/// Longest element, so that memory stays bounded.
pub(super) const ELEMENT_MAX: usize = 4 << 20;

/// An element with the names as they are written, prefixes included.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Self>,
    /// Text outside of the children.
    pub(super) text: String,
}

impl Element {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The child of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    fn of(tag: &BytesStart<'_>) -> Result<Self, String> {
        let mut element = Self { name: tag.name().as_ref().to_owned(), ..Self::default() };
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| error.to_string())?.into_owned();
            element.attributes.push((attribute.key.as_ref().to_owned(), value));
        }
        Ok(element)
    }
}

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The tag that opens the stream.
    Header(Element),
    /// A child of the stream.
    Child(Element),
    /// The tag that closes the stream.
    End,
}

/// Where the input that has been examined ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    #[default]
    Text,
    /// After `<`.
    TagStart,
    /// In a tag, outside of quotation marks.
    Tag { closes: bool, after_slash: bool },
    /// In the value of an attribute, until this quotation mark.
    Value { closes: bool, mark: u8 },
    /// In the XML declaration.
    Declaration { after_question_mark: bool },
}

/// Divides the input into parts. Each byte is examined once, however the input is divided.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    position: Position,
    /// Elements that are open.
    depth: usize,
    /// Bytes of the input that have been examined.
    examined: usize,
    /// Where the part begins.
    start: usize,
}

impl Splitter {
    /// Takes the next part off the input, if it is complete.
    pub(super) fn poll(&mut self, input: &mut Vec<u8>) -> Result<Option<Part>, String> {
        while let Some(&byte) = input.get(self.examined) {
            let depth = self.depth;
            let is_tag_end = self.examine(byte)?;
            self.examined += 1;
            if self.examined - self.start > ELEMENT_MAX {
                return Err(format!("an element is longer than {ELEMENT_MAX} B"));
            }
            if is_tag_end && depth.min(self.depth) <= 1 {
                if let Some(part) = self.part(depth, input)? {
                    return Ok(Some(part));
                }
            } else if self.depth <= 1 && self.position == Position::Text {
                // White space between elements keeps a connection alive (RFC 6120, section 11.7).
                self.start = self.examined;
            }
        }
        if self.start == self.examined {
            input.clear();
            (self.examined, self.start) = (0, 0);
        }
        Ok(None)
    }

    /// Examines a byte; `true` if it ends a tag of an element.
    fn examine(&mut self, byte: u8) -> Result<bool, String> {
        match (self.position, byte) {
            (Position::Text, b'<') => self.position = Position::TagStart,
            (Position::Text, byte) if self.depth <= 1 && !byte.is_ascii_whitespace() => {
                return Err("text between the elements of the stream".into());
            }
            (Position::Text, _) => {}
            (Position::TagStart, b'?') if self.depth == 0 => {
                self.position = Position::Declaration { after_question_mark: false };
            }
            (Position::TagStart, b'?' | b'!') => {
                let reason = "comments, processing instructions, declarations and CDATA sections \
                              are not supported";
                return Err(reason.into());
            }
            (Position::TagStart, byte) => {
                self.position = Position::Tag { closes: byte == b'/', after_slash: false };
            }
            (Position::Tag { closes, .. }, mark @ (b'\'' | b'"')) => {
                self.position = Position::Value { closes, mark };
            }
            (Position::Tag { closes, after_slash }, b'>') => {
                self.position = Position::Text;
                return self.end_tag(closes, after_slash).map(|()| true);
            }
            (Position::Tag { closes, .. }, byte) => {
                self.position = Position::Tag { closes, after_slash: byte == b'/' };
            }
            (Position::Value { closes, mark }, byte) if byte == mark => {
                self.position = Position::Tag { closes, after_slash: false };
            }
            (Position::Value { .. }, _) => {}
            (Position::Declaration { after_question_mark: true }, b'>') => {
                self.position = Position::Text;
            }
            (Position::Declaration { .. }, byte) => {
                self.position = Position::Declaration { after_question_mark: byte == b'?' };
            }
        }
        Ok(false)
    }

    fn end_tag(&mut self, closes: bool, is_empty: bool) -> Result<(), String> {
        match (closes, is_empty) {
            (true, _) => {
                let depth = self.depth.checked_sub(1);
                self.depth = depth.ok_or("a tag closes an element that is not open")?;
            }
            (false, false) if self.depth == DEPTH_MAX => {
                return Err(format!("more than {DEPTH_MAX} elements inside each other"));
            }
            (false, false) => self.depth += 1,
            (false, true) if self.depth == 0 => return Err("an empty stream".into()),
            (false, true) => {}
        }
        Ok(())
    }

    /// The part that ends at the last byte; `depth` elements were open before its last tag.
    fn part(&mut self, depth: usize, input: &mut Vec<u8>) -> Result<Option<Part>, String> {
        if depth == 1 && self.depth == 2 {
            // The start tag of a child of the stream, which continues.
            return Ok(None);
        }
        let rest = input.split_off(self.examined);
        let part = std::mem::replace(input, rest);
        let part = &part[self.start..];
        (self.examined, self.start) = (0, 0);
        match (depth, self.depth) {
            (_, 0) => Ok(Some(Part::End)),
            (0, _) => header(part).map(|header| Some(Part::Header(header))),
            _ => element(part).map(|element| Some(Part::Child(element))),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".into())
}

/// A start tag without its contents.
fn header(bytes: &[u8]) -> Result<Element, String> {
    match Reader::from_str(text(bytes)?).read_event() {
        Ok(Event::Start(tag)) => Element::of(&tag),
        Ok(_) => Err("expected a start tag".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// An element with its contents.
fn element(bytes: &[u8]) -> Result<Element, String> {
    let mut reader = Reader::from_str(text(bytes)?);
    let mut open: Vec<Element> = Vec::new();
    loop {
        let closed = match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                open.push(Element::of(&tag)?);
                continue;
            }
            Event::Empty(tag) => Element::of(&tag)?,
            Event::End(_) => open.pop().ok_or("a tag closes an element that is not open")?,
            Event::Text(part) => {
                if let Some(element) = open.last_mut() {
                    element.text += &part.xml10_content();
                }
                continue;
            }
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|error| error.to_string())?;
                let Some(element) = open.last_mut() else { continue };
                match (character, resolve_predefined_entity(&reference)) {
                    (Some(character), _) => element.text.push(character),
                    (None, Some(text)) => element.text += text,
                    // Other entities are prohibited (RFC 6120, section 11.1).
                    (None, None) => return Err(format!("the entity {}", &*reference)),
                }
                continue;
            }
            _ => return Err("an element is not complete".into()),
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => return Ok(closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a text that arrives in pieces, and the error after them.
    fn parts(text: &str, piece: usize) -> (Vec<Part>, Option<String>) {
        let (mut splitter, mut input, mut parts) = (Splitter::default(), Vec::new(), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            input.extend(piece);
            loop {
                match splitter.poll(&mut input) {
                    Ok(Some(part)) => parts.push(part),
                    Ok(None) => break,
                    Err(error) => return (parts, Some(error)),
                }
            }
        }
        (parts, None)
    }

    #[test]
    fn a_stream_is_divided_into_its_elements() {
        let text = "<?xml version='1.0'?>\n<s:s a='>\"' b=\"/'\"> <m to='a&amp;b'>x&lt;<i/>\
                    &#65;<j><k/></j></m>\n<e/> </s:s>";
        let whole = parts(text, text.len());
        for piece in 1..text.len() {
            assert_eq!(parts(text, piece), whole, "pieces of {piece} B");
        }
        let (parts, None) = whole else { panic!("{whole:?}") };
        let [Part::Header(header), Part::Child(message), Part::Child(empty), Part::End] =
            &parts[..]
        else {
            panic!("{parts:?}")
        };
        assert_eq!(header.name, "s:s");
        assert_eq!((header.attribute("a"), header.attribute("b")), (Some(">\""), Some("/'")));
        assert_eq!((message.attribute("to"), message.text.as_str()), (Some("a&b"), "x<A"));
        assert!(message.child("j").is_some_and(|child| child.child("k").is_some()));
        assert_eq!((empty.name.as_str(), empty.child("i")), ("e", None));
    }

    #[test]
    fn what_xmpp_prohibits_is_an_error() {
        for (text, expected) in [
            ("x", "text between"),
            ("<s/>", "an empty stream"),
            ("</s>", "not open"),
            ("<s>x", "text between"),
            ("<s><!-- x -->", "comments"),
            ("<s><a><?x?>", "processing instructions"),
            ("<s><a>&x;</a>", "entity"),
            ("<s><a></b>", "expected"),
            ("<s><a b='1' b='2'/>", "duplicate"),
        ] {
            let (_, error) = parts(text, 1);
            assert!(
                error.as_ref().is_some_and(|error| error.contains(expected)),
                "{text}: {error:?}"
            );
        }
        let (_, error) = parts(&"<a>".repeat(DEPTH_MAX + 1), 100);
        assert!(error.is_some_and(|error| error.contains("inside each other")));
        let long = format!("<s><a b='{}", "x".repeat(ELEMENT_MAX));
        assert!(parts(&long, 1 << 16).1.is_some_and(|error| error.contains("longer than")));
    }
}
