//! "Did you mean": the known name that is nearest to a mistyped one.

/// The remedy for an unknown name: the nearest known one, else all of them.
pub(crate) fn remedy(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(known) => format!("did you mean `{known}`?"),
        None if known.is_empty() => "there are none in this file yet".into(),
        None => format!("known are {}", list(known)),
    }
}

/// The known name that differs by few letters, if there is one.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 4);
    let distances = known.iter().map(|known| (distance(name, known), *known));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, known)| known)
}

/// Names in a row, cut where there are many.
pub(super) fn list(names: &[&str]) -> String {
    const SHOWN: usize = 16;
    let mut text: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        text.push(format!("and {} more", names.len() - SHOWN));
    }
    text.join(", ")
}

/// Letters to insert, remove, replace or swap with a neighbour to get from one name to the other,
/// whatever their case.
fn distance(one: &str, other: &str) -> usize {
    // Names of files are short; what is not is near to nothing.
    if one.len() > 64 || other.len() > 64 {
        return usize::MAX;
    }
    strsim::osa_distance(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_no_far_one() {
        let known = ["delay", "rate", "queue", "load_latency"];
        assert_eq!(nearest("dealy", &known), Some("delay"));
        assert_eq!(nearest("Rate", &known), Some("rate"));
        assert_eq!(nearest("load_latncey", &known), Some("load_latency"));
        assert_eq!(nearest("colour", &known), None);
    }
}
