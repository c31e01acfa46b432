//! Verdicts of a run: for each application class, whether its limits are met.

use anyhow::{Context, bail};
use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use super::distribution::millis;
use crate::method::Summary;
use crate::run::Run;
use crate::verdict::{ApplicationClass, Evidence, Path, Reason, Verdict, judge};

/// Quantiles of the latency that are compared with a limit: the upper whisker of the box plots, and
/// the tail.
const SHARES: [f64; 2] = [0.98, 0.999];

/// One class, quantile and part of the path.
#[derive(Debug)]
struct Judgement {
    class: ApplicationClass,
    path: Path,
    share: f64,
    limit: Duration,
    /// `None` if this part was not measured.
    judged: Option<(Evidence, Verdict)>,
}

/// The verdicts of a run.
#[derive(Debug)]
pub(crate) struct Verdicts {
    judgements: Vec<Judgement>,
    /// Whether the network alone can be measured: not with an agent.
    has_network_share: bool,
    /// Whether one class was chosen, and the run meets its limits.
    chosen: Option<bool>,
}

/// The classes to judge: the one of this name, or all.
///
/// # Errors
/// There is no such class.
fn classes(name: Option<&str>) -> anyhow::Result<Vec<ApplicationClass>> {
    let Some(name) = name else { return Ok(ApplicationClass::all()) };
    match ApplicationClass::named(name) {
        Some(class) => Ok(vec![class]),
        None => {
            let names: Vec<_> =
                ApplicationClass::all().into_iter().map(|class| class.name).collect();
            bail!(
                "--class: there is no application class \"{name}\"\n  help: choose from: {}",
                names.join("; ")
            )
        }
    }
}

impl Verdicts {
    /// Judges a run for the class of this name, or for all classes.
    ///
    /// # Errors
    /// There is no such class.
    pub(crate) fn new(run: &Run, class: Option<&str>) -> anyhow::Result<Self> {
        let mut judgements = Vec::new();
        let horizon = run.plan.horizon;
        // After an interruption by the user, all messages that were sent are counted.
        let has_fault = run.outcome.fault.is_some() && !run.interrupted;
        for class in classes(class)? {
            for (path, summary) in [
                (Path::Applications, Some(run.judged())),
                (Path::Network, run.network_alone.as_ref()),
            ] {
                let Some(limit) = class.limit(path) else { continue };
                for share in SHARES {
                    let judged = summary
                        .map(|summary| decide(&class, path, summary, horizon, share, has_fault))
                        .transpose()?;
                    let class = class.clone();
                    judgements.push(Judgement { class, path, share, limit, judged });
                }
            }
        }
        let of_class = |judgement: &&Judgement| judgement.share == SHARES[0];
        let met = |judgement: &Judgement| match &judgement.judged {
            Some((_, verdict)) => *verdict == Verdict::Pass,
            // The network was not measured: only the whole path is judged.
            None => true,
        };
        let chosen = class.map(|_| judgements.iter().filter(of_class).all(met));
        Ok(Self { judgements, has_network_share: run.remote.is_none(), chosen })
    }

    /// Whether the class that was chosen is not met or not decidable.
    pub(crate) fn is_chosen_class_not_met(&self) -> bool {
        self.chosen == Some(false)
    }

    /// A row for each class and part of the path.
    pub(super) fn table(&self) -> TextTable {
        // A network that was not measured has no row: the note names the option.
        let measured = self.judgements.chunks(SHARES.len()).filter(|pair| pair[0].judged.is_some());
        let rows = measured.map(|pair| {
            let first = &pair[0];
            let class = &first.class;
            let unchecked = if class.checked { "" } else { " *" };
            let path = path_name(first.path);
            let unsuccessful = first.judged.and_then(|(evidence, _)| evidence.unsuccessful.upper);
            let cells = [
                format!("{}{unchecked}", class.name),
                format!("{}, {}", class.standard, class.edition),
                path.to_owned(),
                millis(Some(first.limit)),
            ];
            let bound = first.judged.and_then(|(evidence, _)| evidence.latency.upper);
            let rest = [
                millis(bound),
                unsuccessful
                    .map_or_else(|| UNKNOWN.into(), |share| format!("{:.3} %", share * 100.0)),
            ];
            let verdicts = pair
                .iter()
                .map(|judgement| verdict_text(judgement.judged.map(|(_, verdict)| verdict)));
            cells.into_iter().chain(rest).chain(verdicts).collect()
        });
        let mut note = "An application passes if the upper bound (95 %) of the percentile is \
            within the limit; messages without \
                        an intact copy count as late."
            .to_owned();
        if self.judgements.iter().any(|judgement| !judgement.class.checked) {
            note +=
                "\n* limit from secondary literature, not compared with the text of the standard";
        }
        if self.has_network_share
            && self.judgements.iter().any(|judgement| judgement.judged.is_none())
        {
            note += "\nThe network alone was not measured: add --network-share.";
        }
        let headers = [
            "class",
            "standard, edition",
            "path",
            "limit (ms)",
            "p98 at most (ms)",
            "lost or late at most",
            "verdict p98",
            "verdict p99.9",
        ];
        TextTable {
            title: "Application classes".into(),
            headers: headers.map(String::from).to_vec(),
            rows: rows.collect(),
            key_columns: 3,
            note: Some(note),
        }
    }

    /// Every judgement with its evidence.
    pub(super) fn json(&self) -> Value {
        self.judgements.iter().map(judgement).collect()
    }
}

/// How many runs pass and fail, for each class, part of the path and quantile. All runs were judged
/// for the same classes.
struct Tally<'a> {
    judgement: &'a Judgement,
    pass: usize,
    fail: usize,
    not_decidable: usize,
    not_measured: usize,
}

fn tallies<'a>(runs: &[&'a Verdicts]) -> Vec<Tally<'a>> {
    let Some((first, _)) = runs.split_first() else { return Vec::new() };
    let tally = |(place, judgement): (usize, &'a Judgement)| {
        let mut tally = Tally { judgement, pass: 0, fail: 0, not_decidable: 0, not_measured: 0 };
        for run in runs {
            let count = match run.judgements[place].judged {
                None => &mut tally.not_measured,
                Some((_, Verdict::Pass)) => &mut tally.pass,
                Some((_, Verdict::Fail { .. })) => &mut tally.fail,
                Some((_, Verdict::NotDecidable { .. })) => &mut tally.not_decidable,
            };
            *count += 1;
        }
        tally
    };
    first.judgements.iter().enumerate().map(tally).collect()
}

/// A row for each class and part of the path that was measured.
pub(crate) fn tally(runs: &[&Verdicts]) -> TextTable {
    let tallies = tallies(runs);
    let measured = tallies.chunks(SHARES.len()).filter(|pair| pair[0].not_measured == 0);
    let rows = measured.map(|pair| {
        let class = &pair[0].judgement.class;
        let cells = [
            class.name.clone(),
            path_name(pair[0].judgement.path).to_owned(),
            millis(Some(pair[0].judgement.limit)),
        ];
        let counts = pair
            .iter()
            .map(|tally| format!("{} / {} / {}", tally.pass, tally.fail, tally.not_decidable));
        cells.into_iter().chain(counts).collect()
    });
    TextTable {
        title: "Application classes: runs that pass / fail / do not decide".into(),
        headers: ["class", "path", "limit (ms)", "p98", "p99.9"].map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 3,
        note: None,
    }
}

/// The same as JSON.
pub(crate) fn tally_json(runs: &[&Verdicts]) -> Value {
    let json = |tally: &Tally<'_>| {
        json!({
            "class": tally.judgement.class.name,
            "path": path_name(tally.judgement.path),
            "quantile": tally.judgement.share,
            "limit_s": tally.judgement.limit.as_secs_f64(),
            "pass": tally.pass,
            "fail": tally.fail,
            "not_decidable": tally.not_decidable,
            "not_measured": tally.not_measured,
        })
    };
    tallies(runs).iter().map(json).collect()
}

const fn path_name(path: Path) -> &'static str {
    match path {
        Path::Applications => "applications",
        Path::Network => "network",
    }
}

fn decide(
    class: &ApplicationClass,
    path: Path,
    summary: &Summary,
    horizon: Duration,
    share: f64,
    has_fault: bool,
) -> anyhow::Result<(Evidence, Verdict)> {
    let limit = class.limit(path).context("the class has a limit for this path")?;
    let evidence = Evidence::of_run(summary, horizon, share, limit);
    let verdict = judge(class, path, &evidence).context("the class has a limit for this path")?;
    let Evidence { messages, messages_needed, .. } = evidence;
    let undecided = Verdict::NotDecidable { reason: Reason::Incomplete, messages, messages_needed };
    Ok((evidence, if has_fault { undecided } else { verdict }))
}

fn verdict_text(verdict: Option<Verdict>) -> String {
    let name = |reason| match reason {
        Reason::Latency => "latency",
        Reason::Unsuccessful => "lost or late",
        Reason::Incomplete => "the run ended early",
    };
    match verdict {
        None => UNKNOWN.into(),
        Some(Verdict::Pass) => "pass".into(),
        Some(Verdict::Fail { reason }) => format!("fail: {}", name(reason)),
        Some(Verdict::NotDecidable { reason: reason @ Reason::Incomplete, .. }) => {
            format!("not decidable: {}", name(reason))
        }
        Some(Verdict::NotDecidable { reason, messages, messages_needed }) => {
            let name = name(reason);
            if messages < messages_needed {
                format!("not decidable: {name} ({messages} of {messages_needed})")
            } else {
                format!("not decidable with {messages}: {name}")
            }
        }
    }
}

fn judgement(judgement: &Judgement) -> Value {
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let mut value = json!({
        "class": judgement.class.name,
        "standard": judgement.class.standard,
        "edition": judgement.class.edition,
        "application": judgement.class.application,
        "source": judgement.class.source,
        "checked": judgement.class.checked,
        "path": path_name(judgement.path),
        "limit_s": judgement.limit.as_secs_f64(),
        "quantile": judgement.share,
    });
    let Some((evidence, verdict)) = judgement.judged else {
        value["verdict"] = "not_measured".into();
        return value;
    };
    value["messages"] = evidence.messages.into();
    value["latency_low95_s"] = seconds(evidence.latency.lower).into();
    value["latency_high95_s"] = seconds(evidence.latency.upper).into();
    value["unsuccessful_low95"] = evidence.unsuccessful.lower.into();
    value["unsuccessful_high95"] = evidence.unsuccessful.upper.into();
    if let Ok(Value::Object(verdict)) = serde_json::to_value(verdict) {
        for (key, field) in verdict {
            value[key] = field;
        }
    }
    value
}
