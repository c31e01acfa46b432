//! Swept keys in few words: `delayed_ack` instead of `stack.linux.delayed_ack`.

use gridhaul_scenario::answer::Point;

use crate::quantity::quantity;

/// The last part of a key.
pub(crate) fn short(key: &str) -> &str {
    let (before, last) = key.rsplit_once('.').unwrap_or(("", key));
    // The kind of loss says less than that it is loss.
    if before.ends_with(".loss") && last == "bernoulli" { "loss" } else { last }
}

/// The last part, and what it belongs to: `delayed_ack of stack linux`.
pub(crate) fn label(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let [kind @ ("stack" | "link" | "flow" | "node"), name, rest @ ..] = parts.as_slice() else {
        return key.to_owned();
    };
    let direction = match rest {
        [way @ ("forward" | "backward" | "both"), _, ..] => format!(", {way}"),
        [_, ..] => String::new(),
        [] => return key.to_owned(),
    };
    format!("{} of {kind} {name}{direction}", short(key))
}

/// A value with its key: words speak for themselves, numbers and switches need the key. Of two keys
/// that end alike, all is told.
pub(crate) fn told(key: &str, value: &str, all: &[String]) -> String {
    if quantity(value).is_none() && !matches!(value, "true" | "false") {
        return value.to_owned();
    }
    let alone = all.iter().all(|other| other == key || short(other) != short(key));
    if alone { format!("{} {value}", short(key)) } else { format!("{} {value}", label(key)) }
}

/// What tells a point from the others of its sweep.
pub(crate) fn of_point(points: &[Point], index: usize) -> String {
    let Some(point) = points.get(index) else { return format!("point {index}") };
    let differs = |key: &str, value: &String| {
        points.iter().any(|other| other.parameters.get(key) != Some(value))
    };
    let parameters = point.parameters.iter().filter(|(key, value)| differs(key, value));
    let parameters: Vec<_> = parameters.collect();
    let keys: Vec<String> = parameters.iter().map(|(key, _)| (*key).clone()).collect();
    let words: Vec<_> = parameters.iter().map(|(key, value)| told(key, value, &keys)).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_few_words() {
        assert_eq!(label("stack.linux.delayed_ack"), "delayed_ack of stack linux");
        assert_eq!(label("link.a.forward.rate"), "rate of link a, forward");
        assert_eq!(label("link.a.both.loss.bernoulli"), "loss of link a, both");
        assert_eq!(label("flow.ping.load.periodic.every"), "every of flow ping");
        assert_eq!(label("duration"), "duration");
        let keys = ["link.a.both.rate", "link.b.both.rate", "stack.x.sack"].map(String::from);
        assert_eq!(told(&keys[0], "1 Mbit/s", &keys), "rate of link a, both 1 Mbit/s");
        assert_eq!(told(&keys[0], "1 Mbit/s", &keys[..1]), "rate 1 Mbit/s");
        assert_eq!(told(&keys[2], "true", &keys), "sack true");
        assert_eq!(told("stack.x.congestion", "reno", &keys), "reno");
    }
}
