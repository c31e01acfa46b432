//! The reference of a published figure, and the width of its tolerance relative to that reference.

use anyhow::ensure;
use gridhaul_report::Reference;

use super::expected::{Expected, Tolerance};

/// Largest relative tolerance without a stated reason, in percent.
const WIDTH_MAX: f64 = 10.0;

/// Accepts rounding of a limit to the digits of the published number.
const ROUNDING: f64 = 0.1;

/// Checks that a tolerance of more than 10 % of a printed number, of a printed ratio or of ns-2's
/// mean states its reason: a wide tolerance counts a difference as agreement.
pub(super) fn check(cell: &Expected, cells: &[Expected]) -> anyhow::Result<()> {
    let reason = cell.tolerance_reason.as_deref().map(str::trim);
    ensure!(reason != Some(""), "line {}: the tolerance reason is empty", cell.cell);
    let width = cell.width(cells).filter(|width| *width > WIDTH_MAX + ROUNDING);
    ensure!(
        width.is_none() || reason.is_some(),
        "line {}: the tolerance \"{}\" extends to {:.0} % of the number that it is compared with; \
         expected at most {WIDTH_MAX} %\n  help: choose a smaller tolerance, or state its reason \
         in column `tolerance_reason`",
        cell.cell,
        cell.tolerance,
        width.unwrap_or_default()
    );
    Ok(())
}

impl Expected {
    /// The kind of number that the tolerance refers to.
    pub(crate) fn reference(&self, cells: &[Self]) -> Reference {
        match &self.tolerance {
            Tolerance::Ns2(_) | Tolerance::Ns2OrInterval(_) => Reference::Ns2,
            Tolerance::Paper(_) => Reference::PrintedNumber,
            Tolerance::Between(..) | Tolerance::Of(..) => match self.printed_in_tolerance(cells) {
                Some(_) => Reference::PrintedNumber,
                None => Reference::OwnRange,
            },
        }
    }

    /// Largest deviation from the reference that the tolerance accepts, in percent; `None` for an
    /// own range.
    fn width(&self, cells: &[Self]) -> Option<f64> {
        match &self.tolerance {
            Tolerance::Paper(percent)
            | Tolerance::Ns2(percent)
            | Tolerance::Ns2OrInterval(percent) => Some(*percent),
            Tolerance::Between(low, high) | Tolerance::Of(low, high, _) => {
                let printed = self.printed_in_tolerance(cells).filter(|printed| *printed != 0.0)?;
                let deviation = |limit: &f64| (limit / printed - 1.0).abs() * 100.0;
                Some(deviation(low).max(deviation(high)))
            }
        }
    }

    /// The printed number, or the printed ratio of a multiple; `None` if the paper does not print
    /// them.
    fn printed_in_tolerance(&self, cells: &[Self]) -> Option<f64> {
        let printed = self.paper?;
        let Some(other) = self.tolerance.other() else { return Some(printed) };
        let other = cells.iter().find(|cell| cell.cell == other)?;
        Some(printed * self.unit.in_base() / (other.paper? * other.unit.in_base()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::expected::{check, read};
    use super::*;

    const HEADER: &str = "cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds,\
                          scenario,parameters,select,tolerance,differs,reason,tolerance_reason";

    fn cells(paper: &str, ns2: &str, tolerance: &str, reason: &str) -> Vec<Expected> {
        let other = "o,1,r,q,mbit_per_s,2,,,,t,,flow:f:goodput_bit_per_s,paper 1 %,,,";
        let line = format!(
            "c,1,r,q,kbit_per_s,{paper},{ns2},,t,,flow:f:goodput_bit_per_s,{tolerance},,,{reason}"
        );
        read(&format!("{HEADER}\n{other}\n{line}\n")).unwrap()
    }

    #[test]
    fn a_tolerance_above_ten_percent_states_its_reason() {
        for (paper, ns2, tolerance) in [
            ("750", ",", "paper 15 %"),
            ("", "100,2", "ns2 60 % or interval"),
            ("750", ",", "from 500 to 1125"),
            // The printed ratio is 0.5.
            ("1000", ",", "0.3 to 0.75 of o"),
        ] {
            let error = check(&cells(paper, ns2, tolerance, "")).unwrap_err().to_string();
            assert!(error.contains("line c") && error.contains("tolerance_reason"), "{error}");
            assert!(check(&cells(paper, ns2, tolerance, "the figure is not legible")).is_ok());
        }
        for (paper, ns2, tolerance) in [
            ("750", ",", "paper 10 %"),
            ("747.8", ",", "from 673 to 822.6"),
            ("1000", ",", "0.45 to 0.55 of o"),
            // Neither the paper nor ns-2 has a number: an own range, counted as such.
            ("", ",", "from 0 to 1000"),
            ("", ",", "0 to 0.5 of o"),
        ] {
            assert!(check(&cells(paper, ns2, tolerance, "")).is_ok(), "{tolerance}");
        }
    }

    #[test]
    fn comparisons_with_the_paper_with_ns2_and_with_own_ranges_are_distinguished() {
        for (paper, ns2, tolerance, expected) in [
            ("750", ",", "paper 1 %", Reference::PrintedNumber),
            ("750", ",", "from 700 to 800", Reference::PrintedNumber),
            ("1000", ",", "0.45 to 0.55 of o", Reference::PrintedNumber),
            ("102", "100,2", "ns2 3 %", Reference::Ns2),
            ("", "100,2", "from 90 to 110", Reference::OwnRange),
            ("", ",", "0.9 to 1.1 of o", Reference::OwnRange),
        ] {
            let cells = cells(paper, ns2, tolerance, "");
            assert_eq!(cells[1].reference(&cells), expected, "{tolerance}");
        }
    }
}
