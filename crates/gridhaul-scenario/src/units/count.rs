//! Counted nouns in texts: "1 message", "2 messages".

/// A count with its noun in the singular or plural. `noun` is the singular of a regular noun.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{count} {}", plural(noun)),
    }
}

/// The form of "be" in the past that agrees with a count.
#[must_use]
pub fn was_or_were(count: impl TryInto<u64>) -> &'static str {
    if count.try_into().is_ok_and(|count| count == 1) { "was" } else { "were" }
}

/// The plural of a regular noun.
pub(super) fn plural(noun: &str) -> String {
    format!("{noun}s")
}

#[cfg(test)]
mod tests {
    use super::{counted, was_or_were};

    #[test]
    fn only_one_is_singular() {
        let counts = [0_u64, 1, 2].map(|count| counted(count, "message"));
        assert_eq!(counts, ["0 messages", "1 message", "2 messages"]);
        assert_eq!([0_u64, 1, 2].map(was_or_were), ["were", "was", "were"]);
    }
}
