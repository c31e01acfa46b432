//! XML Encoding Rules (basic XER, ITU-T X.693) of this type:
//!
//! ```asn1
//! Time ::= SEQUENCE { seconds INTEGER (0..4294967295), nanoseconds INTEGER (0..999999999) }
//! Sample ::= SEQUENCE {
//!   origin Time OPTIONAL, received Time OPTIONAL,
//!   sequence INTEGER OPTIONAL, values SEQUENCE OF REAL
//! }
//! ```

use std::fmt::Write;
use std::str::FromStr;

use super::{PayloadError, Sample, Timestamp};

pub(super) fn encode(sample: &Sample) -> String {
    let mut text = String::from("<Sample>");
    for (name, time) in [("origin", sample.origin), ("received", sample.received)] {
        if let Some(Timestamp { seconds, nanoseconds }) = time {
            let _ = write!(
                text,
                "<{name}><seconds>{seconds}</seconds>\
                 <nanoseconds>{nanoseconds}</nanoseconds></{name}>"
            );
        }
    }
    if let Some(sequence) = sample.sequence {
        let _ = write!(text, "<sequence>{sequence}</sequence>");
    }
    text.push_str("<values>");
    for value in &sample.values {
        // The shortest decimal number that is read as the same value. X.693, section 8.3: special
        // values are elements.
        let _ = match *value {
            f64::INFINITY => write!(text, "<REAL><PLUS-INFINITY/></REAL>"),
            f64::NEG_INFINITY => write!(text, "<REAL><MINUS-INFINITY/></REAL>"),
            value if value.is_nan() => write!(text, "<REAL><NOT-A-NUMBER/></REAL>"),
            value => write!(text, "<REAL>{value:?}</REAL>"),
        };
    }
    text.push_str("</values></Sample>");
    text
}

pub(super) fn decode(bytes: &[u8]) -> Result<Sample, PayloadError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| PayloadError::Value("XER: expected UTF-8"))?;
    let mut reader = Reader { rest: text };
    reader.expect("<Sample>")?;
    let origin = reader.time("<origin>", "</origin>")?;
    let received = reader.time("<received>", "</received>")?;
    let sequence = if reader.accept("<sequence>") {
        let value = reader.number()?;
        reader.expect("</sequence>")?;
        Some(value)
    } else {
        None
    };
    reader.expect("<values>")?;
    let mut values = Vec::new();
    while reader.accept("<REAL>") {
        values.push(reader.real()?);
        reader.expect("</REAL>")?;
    }
    reader.expect("</values>")?;
    reader.expect("</Sample>")?;
    if !reader.rest.trim_ascii_start().is_empty() {
        return Err(PayloadError::Value("XER: text after </Sample>"));
    }
    Ok(Sample { origin, received, sequence, values })
}

/// The text that has not been read.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Reads this tag if it is next. White space between elements has no meaning (X.693, section
    /// 8.1.4).
    fn accept(&mut self, tag: &str) -> bool {
        let rest = self.rest.trim_ascii_start().strip_prefix(tag);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, tag: &'static str) -> Result<(), PayloadError> {
        if self.accept(tag) { Ok(()) } else { Err(PayloadError::Tag(tag)) }
    }

    fn time(
        &mut self,
        start: &'static str,
        end: &'static str,
    ) -> Result<Option<Timestamp>, PayloadError> {
        if !self.accept(start) {
            return Ok(None);
        }
        self.expect("<seconds>")?;
        let seconds = self.number()?;
        self.expect("</seconds>")?;
        self.expect("<nanoseconds>")?;
        let nanoseconds = self.number()?;
        self.expect("</nanoseconds>")?;
        self.expect(end)?;
        Ok(Some(Timestamp { seconds, nanoseconds }))
    }

    fn real(&mut self) -> Result<f64, PayloadError> {
        let special = [
            ("<PLUS-INFINITY/>", f64::INFINITY),
            ("<MINUS-INFINITY/>", f64::NEG_INFINITY),
            ("<NOT-A-NUMBER/>", f64::NAN),
        ];
        match special.into_iter().find(|(tag, _)| self.accept(tag)) {
            Some((_, value)) => Ok(value),
            None => self.number(),
        }
    }

    /// The number until the next tag.
    fn number<T: FromStr>(&mut self) -> Result<T, PayloadError> {
        let (number, rest) = self.rest.split_at(self.rest.find('<').unwrap_or(self.rest.len()));
        self.rest = rest;
        let number = number.trim_ascii();
        // Names of special values, which the parser of numbers accepts, are not numbers of XER.
        let is_number = |c| matches!(c, '0'..='9' | '.' | '-' | 'e' | 'E');
        let number = Some(number).filter(|text| text.chars().all(is_number));
        let error = PayloadError::Value("XER: expected a number");
        number.and_then(|text| text.parse().ok()).ok_or(error)
    }
}
