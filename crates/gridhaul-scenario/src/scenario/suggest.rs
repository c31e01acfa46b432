//! Suggestions for mistyped names, by edit distance.

/// The remedy for an unknown name: the most similar known name, or else all known names.
pub(crate) fn remedy(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(known) => format!("did you mean `{known}`?"),
        None if known.is_empty() => "this file defines none".into(),
        None => format!("known names: {}", list(known)),
    }
}

/// The most similar known name, if it differs by few letters.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 4);
    let distances = known.iter().map(|known| (distance(name, known), *known));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, known)| known)
}

/// A list of names, truncated if there are many.
pub(super) fn list(names: &[&str]) -> String {
    const SHOWN: usize = 16;
    let mut text: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        text.push(format!("and {} more", names.len() - SHOWN));
    }
    text.join(", ")
}

/// Edit distance of two names, regardless of case: insertions, deletions, replacements and swaps of
/// adjacent letters.
fn distance(one: &str, other: &str) -> usize {
    // Known names are short; a long text is similar to none of them.
    if one.len() > 64 || other.len() > 64 {
        return usize::MAX;
    }
    strsim::osa_distance(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_found_if_it_is_similar_enough() {
        let known = ["delay", "rate", "queue", "load_latency"];
        assert_eq!(nearest("dealy", &known), Some("delay"));
        assert_eq!(nearest("Rate", &known), Some("rate"));
        assert_eq!(nearest("load_latncey", &known), Some("load_latency"));
        assert_eq!(nearest("colour", &known), None);
    }
}
