//! Keys of scenarios, metrics and columns.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::generated::evidence::Tests;
use crate::page::{Finding, Page, Span};
use crate::repository::Repository;

/// Ends of the names of metrics and columns: their units.
pub(crate) const UNITS: [&str; 8] =
    ["_bit_per_s", "_byte", "_ratio", "_count", "_s", "_packets", "_messages", "_index"];

/// Endings of file names: `plan.json` is not a key.
const FILES: [&str; 11] =
    ["toml", "rs", "csv", "tcl", "md", "py", "json", "h", "c", "svg", "parquet"];

/// Sources of the relay's status, whose names are also those of its metrics, and of the events that
/// it delivers.
const RELAY_NAMES: [&str; 7] = [
    "crates/gridhaul-relay/src/head/json.rs",
    "crates/gridhaul-relay/src/collector/io/status.rs",
    "crates/gridhaul-relay/src/collector/io/user_meters.rs",
    "crates/gridhaul-relay/src/head/io/status.rs",
    "crates/gridhaul-relay/src/packet/io/status.rs",
    "crates/gridhaul-relay/src/router/io/status.rs",
    "crates/gridhaul-relay/src/split/io/status.rs",
];

/// The adapter for mosaik, whose messages have keys with units.
const MOSAIK_ADAPTER: &str = "python/gridhaul/mosaik.py";

/// The terms that the reference pages and the schema define.
pub(crate) struct Vocabulary {
    /// Words in backticks in the reference of answers and of series.
    words: BTreeSet<String>,
    schema: Value,
    /// Keys of the configuration of a relay, and names of its status.
    relay: Option<Box<Self>>,
}

impl Vocabulary {
    pub(crate) fn read(repository: &Repository) -> Self {
        let schema = repository.read("docs/reference/scenario.schema.json");
        let pages = ["answer", "series", "tables", "events"]
            .map(|name| repository.page(&format!("docs/reference/{name}.md")));
        let relay = repository.read("docs/reference/relay.schema.json");
        let parsed = |text: &str| serde_json::from_str(text).expect("the schema is JSON");
        let mut relay = Self::new(&[], parsed(&relay));
        let status = RELAY_NAMES.map(|path| repository.read(path));
        relay.words.extend(status.iter().flat_map(|text| quoted_names(text)));
        let mut own = Self::new(&pages, parsed(&schema));
        // Names of tests may end like a metric: `no_link_fails_in_10_s`.
        own.words.extend(Tests::read(repository).names().map(str::to_owned));
        own.words.extend(quoted_names(&repository.read(MOSAIK_ADAPTER)));
        Self { relay: Some(Box::new(relay)), ..own }
    }

    fn new(references: &[Page], schema: Value) -> Self {
        let mut words: BTreeSet<_> =
            references.iter().flat_map(Page::code_spans).map(|span| span.text).collect();
        words.extend(property_names(&schema));
        Self { words, schema, relay: None }
    }

    /// Whether a word is a metric, a column or a key.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        let base = word.strip_suffix("_ci95").or_else(|| word.strip_suffix("_n")).unwrap_or(word);
        let of_relay = self.relay.as_ref().is_some_and(|relay| relay.words.contains(word));
        self.words.contains(word) || self.words.contains(base) || of_relay
    }

    /// Words of code spans that look like a metric or a key and are none.
    pub(crate) fn check(&self, page: &Page) -> Vec<Finding> {
        let spans: Vec<_> =
            page.code_spans().into_iter().map(|Span { line, text }| (line, text)).collect();
        let blocks = page.blocks().into_iter().map(|piece| (piece.line, piece.text.to_owned()));
        let assigned: Vec<_> = spans.iter().cloned().chain(blocks).collect();
        let in_spans = spans.iter().filter_map(|(line, text)| Some((*line, self.fault(text)?)));
        let in_options = assigned.iter().flat_map(|(line, text)| {
            // `run.py` of paper `medx` has keys of its own.
            let ours = |key: &&str| text.contains("gridhaul") || !self.is_foreign(key);
            let keys = assigned_keys(text).into_iter().filter(ours);
            keys.filter_map(|key| Some((*line, self.fault_of_key(key)?)))
        });
        let in_tables =
            page.fenced("toml").into_iter().flat_map(|(line, text)| self.table(line, &text));
        let all = in_spans.chain(in_options).chain(in_tables);
        all.map(|(line, message)| page.finding(line, message)).collect()
    }

    /// Keys of a block of TOML that the schema does not have. Blocks of other files have other
    /// tables at the top.
    fn table(&self, line: usize, text: &str) -> Vec<(usize, String)> {
        let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
        let known = |key: &String| self.schema["properties"].get(key).is_some();
        if !table.keys().any(known)
            || table.contains_key("figure")
            || table.contains_key("scenario")
        {
            return Vec::new();
        }
        let mut keys = Vec::new();
        flatten("", &toml::Value::Table(table), &mut keys);
        let unknown = keys.iter().filter_map(|key| self.fault_of_key(key));
        unknown.map(|message| (line, message)).collect()
    }

    /// Whether no table of a scenario has the first name of the key.
    fn is_foreign(&self, key: &str) -> bool {
        self.schema["properties"].get(key.split('.').next().unwrap_or_default()).is_none()
    }

    /// Why a whole key of a scenario does not exist.
    fn fault_of_key(&self, key: &str) -> Option<String> {
        let parts: Vec<_> =
            key.split('.').map(|part| part.split('[').next().unwrap_or_default()).collect();
        (!self.leads(&self.schema, &parts)).then(|| {
            format!(
                "sets `{key}`, which docs/reference/scenario.schema.json does not have; \
                 correct the key"
            )
        })
    }

    fn fault(&self, text: &str) -> Option<String> {
        let of_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if text.chars().all(of_word) {
            let metric = UNITS.iter().any(|unit| text.ends_with(unit) && text.len() > unit.len());
            return (metric && !self.has_word(text)).then(|| {
                format!(
                    "names a metric `{text}`, which docs/reference/answer.md and series.md do not \
                     have; correct it"
                )
            });
        }
        // `link.x.forward.rate=3 Mbit/s` assigns a value to the key before the sign.
        let key = text.split(['=', ' ']).next().unwrap_or_default().trim_matches(['[', ']']);
        let parts: Vec<_> =
            key.split('.').map(|part| part.split('[').next().unwrap_or_default()).collect();
        let of_key = |c: char| c.is_ascii_alphanumeric() || "_-<>".contains(c);
        let is_key = |part: &&str| !part.is_empty() && part.chars().all(of_key);
        let is_file = parts.last().is_some_and(|ending| FILES.contains(ending));
        if parts.len() < 2 || is_file || !parts.iter().all(is_key) {
            return None;
        }
        if parts[0] == "points" {
            let unknown =
                parts[1..].iter().find(|part| !part.starts_with('<') && !self.has_word(part))?;
            return Some(format!(
                "names `{unknown}` of the answer, which docs/reference/answer.md does not have"
            ));
        }
        let starts = self.starts(parts[0]);
        let of_relay = self.relay.as_ref().is_some_and(|relay| relay.leads(&relay.schema, &parts));
        let known = of_relay
            || starts.is_empty()
            || starts.iter().any(|start| self.leads(start, &parts[1..]));
        (!known).then(|| {
            format!(
                "names a key `{key}`, which docs/reference/scenario.schema.json does not have; \
                 correct the key"
            )
        })
    }

    /// The places at which a key may begin: a table of the file or, for the last part of a key, any
    /// table with its first name.
    fn starts(&self, name: &str) -> Vec<&Value> {
        if let Some(table) = self.schema["properties"].get(name) {
            return vec![table];
        }
        let tables =
            self.schema["$defs"].as_object().into_iter().flat_map(|tables| tables.values());
        tables.flat_map(property_tables).filter_map(|table| table.get(name)).collect()
    }

    /// Whether a key exists below a place of the schema. Names of nodes, links and the like are
    /// free.
    fn leads(&self, place: &Value, parts: &[&str]) -> bool {
        let Some((first, rest)) = parts.split_first() else { return true };
        if let Some(target) = place["$ref"].as_str() {
            let name = target.rsplit('/').next().unwrap_or_default();
            if self.leads(&self.schema["$defs"][name], parts) {
                return true;
            }
        }
        if first.bytes().all(|byte| byte.is_ascii_digit()) && place.get("items").is_some() {
            return self.leads(&place["items"], rest);
        }
        let properties = place["properties"].as_object();
        if first.starts_with('<')
            && properties.is_some_and(|all| all.values().any(|next| self.leads(next, rest)))
        {
            return true;
        }
        let below = properties.and_then(|all| all.get(*first));
        let free = place.get("additionalProperties").filter(|value| value.is_object());
        let next = below.or(free).is_some_and(|next| self.leads(next, rest));
        let alternatives =
            ["oneOf", "anyOf", "allOf"].iter().filter_map(|word| place[word].as_array()).flatten();
        let items = place.get("items").is_some_and(|items| self.leads(items, parts));
        next || items || alternatives.into_iter().any(|place| self.leads(place, parts))
    }
}

/// The keys of `--set KEY=VALUE` and `--vary KEY=VALUES`. `gridhaul measure matrix` varies options,
/// and no keys.
fn assigned_keys(text: &str) -> Vec<&str> {
    if text.contains("measure matrix ") {
        return Vec::new();
    }
    let after = |option: &'static str| text.split(option).skip(1);
    let rests = after("--set ").chain(after("--vary "));
    let assigned = rests.filter_map(|rest| rest.trim_start_matches(['\'', '"']).split_once('='));
    assigned.map(|(key, _)| key).filter(|key| !key.contains(' ')).collect()
}

/// All keys of a table, with dots. The keys of `vary`, `choose` and `cost` are keys of the
/// scenario, in quotes.
fn flatten(prefix: &str, value: &toml::Value, keys: &mut Vec<String>) {
    let of_keys = ["sweep.vary.", "plan.choose.", "plan.cost."].contains(&prefix);
    match value {
        toml::Value::Table(table) if of_keys => keys.extend(table.keys().cloned()),
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{prefix}{key}."), value, keys);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| flatten(prefix, value, keys)),
        _ => keys.push(prefix.trim_end_matches('.').to_owned()),
    }
}

/// The tables of properties of a definition, also of its alternatives.
fn property_tables(place: &Value) -> Vec<&Value> {
    let own = place.get("properties").into_iter();
    let inner =
        ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|word| place[word].as_array()).flatten();
    own.chain(inner.flat_map(property_tables)).collect()
}

fn property_names(schema: &Value) -> Vec<String> {
    let tables = schema["$defs"].as_object().into_iter().flat_map(|tables| tables.values());
    let all = tables.chain([schema]).flat_map(property_tables).filter_map(Value::as_object);
    all.flat_map(|table| table.keys().cloned()).collect()
}

/// Names of a JSON object in source code.
fn quoted_names(source: &str) -> impl Iterator<Item = String> + '_ {
    let quoted = source.split('"').skip(1).step_by(2);
    quoted.filter(|name| UNITS.iter().any(|unit| name.ends_with(unit))).map(String::from)
}

#[test]
fn a_metric_or_a_key_that_does_not_exist_is_reported() {
    let schema = serde_json::json!({
        "properties": {"link": {"additionalProperties": {"$ref": "#/$defs/Link"}}},
        "$defs": {
            "Link": {"properties": {"forward": {"$ref": "#/$defs/Direction"},
                "both": {"$ref": "#/$defs/Direction"}}},
            "Direction": {"properties": {"rate": {},
                "outage": {"items": {"$ref": "#/$defs/Outage"}}}},
            "Outage": {"properties": {"length": {}}},
        },
    });
    let vocabulary = Vocabulary::new(&[Page::made_up("answer.md", "`delay_mean_s`")], schema);
    let good = "`delay_mean_s` `delay_mean_s_ci95` `link.x.forward.rate=3 Mbit/s` \
                `outage[0].length` `forward.outage.0.length` `link.<name>.<direction>.rate` \
                `plan.json` `forward.rate` `a.b`";
    assert_eq!(vocabulary.check(&Page::made_up("a.md", good)), []);
    let table = "```toml\nlink.x.forward.rate = 1\nlink.x.forward.speed = 2\n```\n";
    let found = vocabulary
        .check(&Page::made_up("a.md", &format!("{table}`--set link.x.forward.size=3`\n")));
    let sets = |line, key| {
        format!(
            "a.md:{line}: sets `{key}`, which docs/reference/scenario.schema.json does not have; \
             correct the key"
        )
    };
    let expected = [sets(5, "link.x.forward.size"), sets(1, "link.x.forward.speed")];
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let page = Page::made_up("a.md", "`delay_average_s`\n`link.x.backward.rate`\n`outage.size`");
    let found: Vec<_> = vocabulary.check(&page).iter().map(ToString::to_string).collect();
    let key = |line, key| {
        format!(
            "a.md:{line}: names a key `{key}`, which docs/reference/scenario.schema.json does not \
             have; correct the key"
        )
    };
    let metric = "a.md:1: names a metric `delay_average_s`, which docs/reference/answer.md and \
                  series.md do not have; correct it";
    assert_eq!(found, [metric.to_owned(), key(2, "link.x.backward.rate"), key(3, "outage.size")]);
}
