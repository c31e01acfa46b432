//! Suggestions for mistyped names, by edit distance.

/// Keys with a former name: files with it are in use although no version with it was released.
const RENAMED: [(&str, &str); 1] = [("aggregate", "collector")];

/// The remedy for an unknown name: its new name if it was renamed, or else the most
/// similar known name, or else all known names.
pub(crate) fn remedy(name: &str, known: &[&str]) -> String {
    let renamed = RENAMED.iter().find(|(old, new)| *old == name && known.contains(new));
    if let Some((_, new)) = renamed {
        return format!("the key is `{new}` now: rename it");
    }
    match nearest(name, known) {
        Some(known) => format!("did you mean `{known}`?"),
        None if !longer(name, known).is_empty() => {
            format!("did you mean {}?", or_list(&longer(name, known)))
        }
        None if known.is_empty() => "this file defines none".into(),
        None => format!("known names: {}", list(name, known)),
    }
}

/// The most similar known name, if it differs by few letters.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 4);
    let distances = known.iter().map(|known| (distance(name, known), *known));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, known)| known)
}

/// The first known names that have further parts after a name, such as `goodput_bit_per_s`.
fn longer<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let is_longer =
        |known: &&&str| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
    known.iter().filter(is_longer).take(LONGER_MAX).copied().collect()
}

const LONGER_MAX: usize = 4;

fn or_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

/// Largest number of names in a list: there are fewer keys in every table of a scenario, and fewer
/// metrics.
const LISTED_MAX: usize = 120;

/// A list of names; if there are many, of those that are most similar to a name.
pub(super) fn list(name: &str, names: &[&str]) -> String {
    let mut listed = names.to_vec();
    if names.len() > LISTED_MAX {
        listed.sort_by_key(|known| distance(name, known));
        listed.truncate(LISTED_MAX);
    }
    let mut text: Vec<_> = listed.iter().map(|name| format!("`{name}`")).collect();
    if names.len() > LISTED_MAX {
        text.push(format!("and {} more", names.len() - LISTED_MAX));
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
    fn a_list_of_keys_is_complete_and_a_long_list_of_names_has_the_most_similar_ones() {
        let names: Vec<String> = (0..1_000).map(|number| format!("meter{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(list("x", &names[..17]).ends_with("`meter16`"));
        let text = list("mtr987", &names);
        assert!(text.contains("`meter987`"), "{text}");
        assert!(text.ends_with("and 880 more"), "{text}");
    }

    #[test]
    fn a_name_without_its_unit_is_completed() {
        let known = ["goodput_bit_per_s", "delay_mean_s", "delay_max_s", "delayed_count"];
        assert_eq!(remedy("goodput", &known), "did you mean `goodput_bit_per_s`?");
        assert_eq!(remedy("delay", &known), "did you mean `delay_mean_s` or `delay_max_s`?");
        assert!(remedy("", &known).starts_with("known names: "));
    }

    #[test]
    fn the_most_similar_name_is_found_if_it_is_similar_enough() {
        let known = ["delay", "rate", "queue", "load_latency"];
        assert_eq!(nearest("dealy", &known), Some("delay"));
        assert_eq!(nearest("Rate", &known), Some("rate"));
        assert_eq!(nearest("load_latncey", &known), Some("load_latency"));
        assert_eq!(nearest("colour", &known), None);
    }
}
