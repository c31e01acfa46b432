//! Differentiated services code points.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::suggest;

/// Differentiated services code point of a packet (RFC 2474, section 3), from 0 to 63. In files: a
/// name such as `"EF"`, or the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dscp(u8);

/// The code points with names: the class selectors (RFC 2474, section 4.2.2), assured forwarding
/// (RFC 2597), expedited forwarding (RFC 3246), voice-admit (RFC 5865), and lower effort (RFC
/// 8622).
const NAMES: [(&str, u8); 23] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VOICE-ADMIT", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

impl Dscp {
    /// Number of code points.
    pub const COUNT: usize = 64;

    /// The code point of a number from 0 to 63.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// The number of the code point.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The traffic class octet of the IP header: the code point in its upper six bits, and "not
    /// ECN-capable" in the others (RFC 3168, section 5).
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0 << 2
    }

    /// The code point of a traffic class octet.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Self {
        Self(octet >> 2)
    }

    /// Whether this is the default code point, which files leave out.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, number)| *number == self.0).map(|(name, _)| *name)
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_u8(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrNumber)
    }
}

/// Deserialises a name or a number.
struct NameOrNumber;

impl Visitor<'_> for NameOrNumber {
    type Value = Dscp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a code point such as \"EF\", or a number from 0 to 63")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Dscp, E> {
        u8::try_from(number).ok().and_then(Dscp::new).ok_or_else(|| {
            E::custom(format!("{number} is not a code point: write a number from 0 to 63"))
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Dscp, E> {
        u64::try_from(number)
            .map_err(|_| E::custom(format!("{number} is not a code point: write 0 to 63")))
            .and_then(|number| self.visit_u64(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dscp, E> {
        let found = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, number)| Dscp(*number)).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name);
            let remedy = suggest::remedy(&text.to_ascii_uppercase(), &names);
            E::custom(format!("there is no code point {text:?}: {remedy}, or write its number"))
        })
    }
}

#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for Dscp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CodePoint".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = NAMES.map(|(name, _)| name);
        schemars::json_schema!({
            "description": "Differentiated services code point (RFC 2474, section 3).",
            "anyOf": [
                {
                    "description": "Name of RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), \
                                    RFC 5865 (VOICE-ADMIT) or RFC 8622 (LE).",
                    "type": "string",
                    "enum": names,
                },
                {
                    "description": "Number of the code point.",
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 63,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Table {
        dscp: Dscp,
    }

    fn read(value: &str) -> Result<Dscp, String> {
        let table = toml::from_str::<Table>(&format!("dscp = {value}"));
        table.map(|table| table.dscp).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn names_have_the_numbers_of_the_rfcs() {
        let cases = [("\"EF\"", 46), ("\"cs6\"", 48), ("\"AF21\"", 18), ("\"LE\"", 1), ("45", 45)];
        for (text, number) in cases {
            assert_eq!(read(text).map(Dscp::number), Ok(number), "{text}");
        }
        // AFxy is 8x + 2y (RFC 2597).
        for (class, precedence) in [(1, 1), (2, 3), (4, 2)] {
            let name = format!("\"AF{class}{precedence}\"");
            assert_eq!(read(&name).map(Dscp::number), Ok(8 * class + 2 * precedence));
        }
        let ef = Dscp::new(46).unwrap();
        assert_eq!((ef.octet(), Dscp::of_octet(0xbb)), (0xb8, ef));
    }

    #[test]
    fn other_values_are_rejected_with_a_remedy() {
        assert!(read("64").unwrap_err().contains("from 0 to 63"));
        assert!(read("-1").unwrap_err().contains("0 to 63"));
        assert!(read("\"EV\"").unwrap_err().contains("EF"));
    }
}
