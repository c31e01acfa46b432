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
    let one: Vec<char> = one.to_lowercase().chars().collect();
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let differs = usize::from(one[i - 1] != other[j - 1]);
                    let near = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let near = near.min(rows[i - 1][j - 1] + differs);
                    let swapped =
                        i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    if swapped { near.min(rows[i - 2][j - 2] + 1) } else { near }
                }
            };
        }
    }
    rows[one.len()][other.len()]
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
