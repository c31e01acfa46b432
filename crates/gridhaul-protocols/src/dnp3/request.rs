//! Object headers of requests (IEEE 1815-2012, clause 4.2.2.7), without data.

/// Internal indications of the second octet (clause 4.2.2.6): the function is not supported, an
/// object is unknown, and a parameter is invalid.
pub(super) const NO_FUNCTION_CODE_SUPPORT: u8 = 0x01;
pub(super) const OBJECT_UNKNOWN: u8 = 0x02;
pub(super) const PARAMETER_ERROR: u8 = 0x04;

/// Group and variation of class 1 events, and of octet string events of any length.
const CLASS_1: (u8, u8) = (60, 2);
const OCTET_STRINGS: (u8, u8) = (super::OCTET_STRING_EVENT, 0);

/// Group and variation of class 0 (static data), 2 and 3, of which this outstation has no objects.
const EMPTY_CLASSES: [(u8, u8); 3] = [(60, 1), (60, 3), (60, 4)];

/// Qualifiers: all objects, or at most as many as a count of one or two bytes says.
const ALL: u8 = 0x06;
const COUNT: u8 = 0x07;
const LONG_COUNT: u8 = 0x08;

/// The request that clears the indication of a restart: internal indication 7 of group 80,
/// variation 1, gets the value 0.
pub(super) const CLEAR_RESTART: [u8; 6] = [80, 1, 0x00, 7, 7, 0];

/// Objects that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Named {
    /// Largest number of class 1 events; 0 if the request does not name them.
    pub events: usize,
    /// Indications of what cannot be answered.
    pub indications: u8,
}

/// Reads the headers of a request for classes and events, such as READ.
pub(super) fn named(mut headers: &[u8]) -> Named {
    let mut named = Named::default();
    while !headers.is_empty() {
        let (header, count, rest) = match *headers {
            [group, variation, ALL, ref rest @ ..] => ((group, variation), usize::MAX, rest),
            [group, variation, COUNT, count, ref rest @ ..] => {
                ((group, variation), usize::from(count), rest)
            }
            [group, variation, LONG_COUNT, low, high, ref rest @ ..] => {
                ((group, variation), usize::from(u16::from_le_bytes([low, high])), rest)
            }
            // Ranges name static data, of which there is none; what follows has no known start.
            [group, ..] => {
                let is_known = group == CLASS_1.0 || group == OCTET_STRINGS.0;
                named.indications |= if is_known { PARAMETER_ERROR } else { OBJECT_UNKNOWN };
                return named;
            }
            [] => return named,
        };
        if [CLASS_1, OCTET_STRINGS].contains(&header) {
            named.events = named.events.saturating_add(count);
        } else if !EMPTY_CLASSES.contains(&header) {
            named.indications |= OBJECT_UNKNOWN;
        }
        headers = rest;
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_unknown_objects_of_a_request_are_told_apart() {
        let found = |headers: &[u8]| {
            let Named { events, indications } = named(headers);
            (events, indications)
        };
        // Integrity poll: classes 1, 2, 3 and 0.
        let integrity = [60, 2, 6, 60, 3, 6, 60, 4, 6, 60, 1, 6];
        assert_eq!(found(&integrity), (usize::MAX, 0));
        assert_eq!(found(&[60, 3, 6, 60, 4, 6]), (0, 0));
        assert_eq!(found(&[60, 2, 7, 3]), (3, 0));
        assert_eq!(found(&[111, 0, 8, 1, 1, 30, 0, 6]), (257, OBJECT_UNKNOWN));
        assert_eq!(found(&[1, 2, 0, 0, 9]), (0, OBJECT_UNKNOWN));
        assert_eq!(found(&[60, 2, 0x17, 1, 0]), (0, PARAMETER_ERROR));
        assert_eq!(found(&[60]), (0, PARAMETER_ERROR));
    }
}
