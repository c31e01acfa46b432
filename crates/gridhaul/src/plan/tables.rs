//! What planning found out, in sentences and tables.

use gridhaul_report::TextTable;
use gridhaul_report::format::{self, UNKNOWN};

use super::judge::Judgement;
use super::limits::{Limit, Measured, State};
use super::picture::money;
use super::search::differences;
use super::{Checked, Outcome, Winner};

/// The finding in a few sentences.
pub(crate) fn finding(outcome: &Outcome) -> String {
    let words = |winner: &Winner| {
        let cost = money(winner.candidate.cost, &outcome.plan);
        format!("{} for {cost}", winner.candidate.trial.words(outcome.keys()))
    };
    match (&outcome.winner, &outcome.impossible, &outcome.tried) {
        (Some(winner), _, None) => format!(
            "The cheapest choice that keeps every limit is {}, by equations alone: nothing was \
             simulated.",
            words(winner)
        ),
        (Some(winner), _, Some(tried)) if tried.len() == 1 => format!(
            "The cheapest choice that keeps every limit is {}. Its simulation confirms it.",
            words(winner)
        ),
        (Some(winner), _, Some(tried)) => format!(
            "The cheapest choice that keeps every limit is {}, and its simulation confirms it. \
             {} did not survive theirs.",
            words(winner),
            counted(tried.len() - 1, "cheaper choice", "cheaper choices"),
        ),
        (None, Some(_), _) => impossible(outcome),
        (None, None, tried) => format!(
            "No choice is confirmed: {} that the equations let pass broke a limit in the \
             simulation. Try more with --tries, offer more in [plan.choose], or relax a limit.",
            counted(tried.as_ref().map_or(0, Vec::len), "choice", "choices"),
        ),
    }
}

/// Which limit is in the way, how near the best comes, and what would have to change.
fn impossible(outcome: &Outcome) -> String {
    let Some(why) = &outcome.impossible else { return String::new() };
    let mut text = format!("None of the {} candidates keeps every limit.", outcome.candidates);
    let mut alone = 0;
    for (limit, best) in outcome.limits.iter().zip(&why.best) {
        let Some((value, candidate)) = best else { continue };
        if limit.used(*value) > 1.0 {
            alone += 1;
            text += &format!(
                "\n\nThe {} cannot be kept by any choice: {} is allowed, and the best is {}, with {}.",
                limit.what(),
                limit.bound_words(),
                limit.shown(*value),
                candidate.trial.words(outcome.keys()),
            );
        }
    }
    if let (0, Some(nearest)) = (alone, &why.nearest) {
        text += &format!(
            "\n\nEach limit can be kept alone, but not all of them together. {} comes nearest.",
            capital(&nearest.trial.words(outcome.keys())),
        );
    }
    for beyond in &why.beyond {
        text += &format!(
            "\n\nBy equations, {} = {} would be enough, where {} is the last that is offered: {} \
             for {}.",
            beyond.key,
            beyond.needed,
            beyond.offered,
            beyond.choice,
            money(beyond.cost, &outcome.plan),
        );
    }
    if why.beyond.is_empty() {
        text += "\n\nNo single number, a thousand times beyond what is offered, would be enough: \
                 relax a limit, or change what is not chosen here.";
    }
    text
}

/// All tables, in the order in which they are read.
pub(crate) fn tables(outcome: &Outcome) -> Vec<TextTable> {
    let mut tables = Vec::new();
    if let Some(winner) = &outcome.winner {
        tables.push(costs(outcome, winner));
        tables.push(kept(outcome, &winner.model, outcome.verified()));
    } else if let Some(last) = outcome.tried.iter().flatten().last() {
        tables.push(kept(outcome, &last.model, Some(last)));
    }
    if outcome.tried.as_ref().is_some_and(|tried| tried.len() > 1) {
        tables.push(tried(outcome));
    }
    if !outcome.others.is_empty() {
        tables.push(others(outcome));
    }
    if let Some(last) = tables.last_mut() {
        last.note = Some(note(outcome));
    }
    tables
}

fn costs(outcome: &Outcome, winner: &Winner) -> TextTable {
    let mut rows = Vec::new();
    for (key, choice) in outcome.keys().iter().enumerate() {
        let Some(value) = &winner.candidate.trial.values[key] else { continue };
        let item = winner.items.iter().find(|item| item.key == key);
        let cost = item.map_or(UNKNOWN.to_owned(), |item| money(item.cost, &outcome.plan));
        let times = match item {
            Some(item) if item.times > 1 => format!("{value} × {}", item.times),
            _ => value.clone(),
        };
        rows.push(vec![choice.key.clone(), times, cost]);
    }
    if !winner.candidate.trial.collectors {
        rows.push(vec!["without collectors".to_owned(), String::new(), UNKNOWN.to_owned()]);
    }
    rows.push(vec!["in all".into(), String::new(), money(winner.candidate.cost, &outcome.plan)]);
    table("Cheapest choice", &["key", "value", "cost"], rows, 1)
}

/// Each limit with what the equations and the simulation say.
fn kept(outcome: &Outcome, model: &Judgement, checked: Option<&Checked>) -> TextTable {
    let mut headers = vec!["limit", "allowed", "equations"];
    headers.extend(checked.map_or(&[][..], |_| &["simulation", "difference"]));
    headers.extend(["margin", "verdict"]);
    let mut guessed = false;
    let rows = outcome.limits.iter().enumerate().map(|(at, limit)| {
        let equations = &model.measured[at];
        guessed |= equations.value.is_none();
        let mut row = vec![limit.what(), limit.bound_words(), shown(limit, equations)];
        let mut last = equations;
        if let Some(checked) = checked {
            last = &checked.measured[at];
            row.push(shown(limit, last));
            row.push(difference(equations, last));
        }
        row.push(last.value.map_or(UNKNOWN.to_owned(), |value| margin(limit, value)));
        row.push(verdict(limit.state(last, 1.0)).to_owned());
        row
    });
    let rows = rows.collect();
    let mut table = table("Limits", &headers, rows, 2);
    if guessed {
        table.note = Some(
            "–: the equations do not give this quantity; candidates are ruled out where the mean \
             passage of a segment alone breaks the limit, and the rest is the simulation's to say."
                .to_owned(),
        );
    }
    table
}

fn tried(outcome: &Outcome) -> TextTable {
    let rows = outcome.tried.iter().flatten().map(|checked| {
        let all = outcome.limits.iter().zip(&checked.measured);
        let broken = all
            .filter(|(limit, measured)| limit.state(measured, 1.0) == State::Broken)
            .map(|(limit, measured)| format!("{} {}", limit.what(), shown(limit, measured)));
        let broken: Vec<_> = broken.collect();
        let verdict = if broken.is_empty() {
            "survives".to_owned()
        } else {
            format!("FAILS: {}", broken.join(", "))
        };
        let words = checked.candidate.trial.words(outcome.keys());
        vec![words, money(checked.candidate.cost, &outcome.plan), verdict]
    });
    let mut table = table("Simulated", &["choice", "cost", "verdict"], rows.collect(), 1);
    let corrected = outcome.limits.iter().zip(&outcome.corrections);
    let corrected: Vec<_> = corrected
        .filter(|(_, factor)| **factor > 1.0)
        .map(|(limit, factor)| {
            format!("{} × {}", limit.what(), format::number((factor * 100.0).round() / 100.0))
        })
        .collect();
    if !corrected.is_empty() {
        table.note = Some(format!(
            "After a failure the equations are corrected for every candidate: {}.",
            corrected.join(", ")
        ));
    }
    table
}

fn others(outcome: &Outcome) -> TextTable {
    let Some(winner) = &outcome.winner else { return TextTable::default() };
    let rows = outcome.others.iter().map(|(other, judgement)| {
        let own = &winner.candidate;
        let extra = match own.cost > 0.0 {
            true => {
                let percent = (other.candidate.cost / own.cost - 1.0) * 100.0;
                let sign = if percent < 0.0 { "−" } else { "+" };
                format!("{sign}{} %", format::number((percent.abs() * 10.0).round() / 10.0))
            }
            false => UNKNOWN.to_owned(),
        };
        vec![
            other.what.clone(),
            differences(&other.candidate.trial, &own.trial, outcome.keys()),
            money(other.candidate.cost, &outcome.plan),
            extra,
            told(outcome, judgement, other.keeps),
        ]
    });
    let headers = ["other choice", "what differs", "cost", "", "by equations"];
    table("Runners-up", &headers, rows.collect(), 2)
}

/// The limit that is nearest or broken most, in words.
fn told(outcome: &Outcome, judgement: &Judgement, keeps: bool) -> String {
    if let Some(trouble) = &judgement.trouble {
        return format!("FAILS: {}", trouble.words());
    }
    let worst = outcome.limits.iter().zip(&judgement.measured).zip(&outcome.corrections);
    let worst = worst.filter_map(|((limit, measured), factor)| {
        let value = measured.value.or(measured.floor)?;
        Some((limit.used(value) * factor, limit, measured, *factor))
    });
    let Some((_, limit, measured, factor)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return "not known".to_owned();
    };
    let word = if keeps { "keeps" } else { "FAILS" };
    let note = if factor > 1.0 && !keeps { " before correction" } else { "" };
    match measured.value {
        Some(value) => format!("{word}: {} {}{note}", limit.what(), limit.shown(value)),
        None => format!("{word}{note}"),
    }
}

/// What was judged, and what could not be.
fn note(outcome: &Outcome) -> String {
    let mut text = format!(
        "{} of {} candidates judged by equations.",
        outcome.judged.min(outcome.candidates),
        outcome.candidates
    );
    for (why, count) in &outcome.refused {
        let candidates = counted(*count, "candidate has", "candidates have");
        text += &format!("\n{candidates} no answer by equations: {why}");
    }
    text
}

/// A value with its interval.
fn shown(limit: &Limit, measured: &Measured) -> String {
    match (measured.value, measured.ci95) {
        (Some(value), Some(ci95)) => format!("{} ± {}", limit.shown(value), limit.shown(ci95)),
        (Some(value), None) => limit.shown(value),
        (None, _) => UNKNOWN.to_owned(),
    }
}

fn difference(model: &Measured, simulation: &Measured) -> String {
    match (model.value, simulation.value) {
        (Some(model), Some(simulation)) if simulation > 0.0 => {
            let percent = (model / simulation - 1.0) * 100.0;
            let sign = if percent < 0.0 { "−" } else { "+" };
            format!("{sign}{} %", format::number((percent.abs() * 10.0).round() / 10.0))
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// Share of the limit that is left.
fn margin(limit: &Limit, value: f64) -> String {
    let left = (1.0 - limit.used(value)) * 100.0;
    if !left.is_finite() {
        return UNKNOWN.to_owned();
    }
    let sign = if left < 0.0 { "−" } else { "" };
    format!("{sign}{} %", format::number(left.abs().round()))
}

const fn verdict(state: State) -> &'static str {
    match state {
        State::Kept => "kept",
        State::Broken => "BROKEN",
        State::Unknown => "not known",
    }
}

fn table(title: &str, headers: &[&str], rows: Vec<Vec<String>>, key_columns: usize) -> TextTable {
    let headers = headers.iter().map(|header| (*header).to_owned()).collect();
    TextTable { title: title.to_owned(), headers, rows, key_columns, note: None }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
