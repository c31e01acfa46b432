//! Mistakes in sweeps and in plans.

pub(crate) const SWEEPS: &[(&str, &str)] = &[
    ("unknown link", r#"vary."link.feder.both.rate" = ["1 Mbit/s"]"#),
    ("unknown key", r#"vary."link.feeder.both.raet" = ["1 Mbit/s"]"#),
    ("unknown table", r#"vary."lnk.feeder.both.rate" = ["1 Mbit/s"]"#),
    ("key below a value", r#"vary."duration.s" = [1, 2]"#),
    ("sweep of the sweep", r#"vary."sweep.0" = [1, 2]"#),
    ("sweep without keys", "vary = {}"),
    ("a value that is no list", r#"vary.seed = 3"#),
    ("empty list", r#"vary.seed = []"#),
    ("wrong unit", r#"vary."link.feeder.both.rate" = ["1 Mbit/s", "2 MB/s"]"#),
    ("not a number", r#"vary."stack.plain.vegas_alpha" = [1.0, nan]"#),
    ("value that contradicts another key", r#"vary.replications = [1, 0]"#),
    ("unequal lists", "vary.seed = [1, 2, 3]\nvary.replications = [1, 2]"),
    ("range of one point", r#"vary.seed = { linear = [1, 9], points = 1 }"#),
    ("too many points", r#"vary.seed = { linear = [1, 9], points = 10000001 }"#),
    ("linear and log", r#"vary.seed = { linear = [1, 9], log = [1, 9], points = 3 }"#),
    ("neither linear nor log", r#"vary.seed = { points = 3 }"#),
    ("range without points", r#"vary.seed = { linear = [1, 9] }"#),
    ("range with one end", r#"vary.seed = { linear = [1], points = 3 }"#),
    ("different units", r#"vary.duration = { linear = ["1 s", "2 min"], points = 3 }"#),
    ("log from 0", r#"vary.duration = { log = ["0 s", "9 s"], points = 3 }"#),
    ("ends that are no numbers", r#"vary.title = { linear = ["a", "b"], points = 3 }"#),
    (
        "too many combinations",
        "vary.seed = { linear = [1, 9999], points = 9999 }\n[[sweep]]\n\
         vary.replications = { linear = [1, 9999], points = 9999 }",
    ),
    ("duplicate key", "vary.seed = [1, 2]\n[[sweep]]\nvary.seed = [1, 2]"),
];

/// A valid plan. Each case below replaces one part of it by an invalid one.
pub(crate) const PLAN: &str = r#"
[plan]
currency = "EUR"
[plan.choose]
"node.meter.count" = { log = [1, 100], points = 9 }
"stack.plain.congestion_control" = ["reno", "vegas"]
[plan.cost]
"node.meter.count" = 900
[plan.limit.reading]
loss = "2 %"
"#;

pub(crate) const PLANS: &[(&str, &str, &str)] = &[
    ("unknown key in a plan", "currency", "curency"),
    ("unknown key to choose", "\"node.meter.count\" = {", "\"node.metre.count\" = {"),
    ("plan as a chosen key", "\"stack.plain.congestion_control\" =", "\"plan.currency\" ="),
    ("a value that cannot be chosen", "\"vegas\"", "\"vega\""),
    ("no values to choose from", "[\"reno\", \"vegas\"]", "[]"),
    (
        "no keys to choose",
        "\"node.meter.count\" = { log = [1, 100], points = 9 }\n\
         \"stack.plain.congestion_control\" = [\"reno\", \"vegas\"]\n\
         [plan.cost]\n\"node.meter.count\" = 900",
        "",
    ),
    (
        "too many candidates",
        "{ log = [1, 100], points = 9 }",
        "{ linear = [1, 30000], points = 30000 }",
    ),
    ("no costs", "\"node.meter.count\" = 900", ""),
    ("negative cost", "= 900", "= -900"),
    ("a cost that is no number", "= 900", "= nan"),
    ("a cost as text", "= 900", "= \"900 EUR\""),
    ("cost of a key that is not chosen", "\"node.meter.count\" = 900", "\"node.metr.count\" = 900"),
    (
        "cost of an existing key that is not chosen",
        "\"node.meter.count\" = 900",
        "\"link.feeder.both.rate\" = 9",
    ),
    (
        "cost of a key without a unit",
        "\"node.meter.count\" = 900",
        "\"stack.plain.congestion_control\" = 900",
    ),
    ("no limits", "[plan.limit.reading]\nloss = \"2 %\"", ""),
    ("limit of an unknown flow", "[plan.limit.reading]", "[plan.limit.readings]"),
    ("no limit of a flow", "loss = \"2 %\"", ""),
    ("loss limit of 100 %", "\"2 %\"", "\"100 %\""),
    ("delay limit of zero", "loss = \"2 %\"", "delay_mean = \"0 s\""),
    ("delay limit of a byte stream", "loss = \"2 %\"", "delay_p98 = \"2 s\""),
    ("deadline limit of a flow without a deadline", "loss = \"2 %\"", "deadline = true"),
    ("no aggregators to remove", "currency = \"EUR\"", "without_aggregators = true"),
];
