//! Checks of the distribution of quality over the members of a group.

use super::Report;
use crate::scenario::{Direction, Link, LinkQuality};

impl Report<'_> {
    pub(super) fn link_quality(&mut self, key: &str, link: &Link, direction: &Direction) {
        let Some(quality) = &direction.quality else { return };
        let key = format!("{key}.quality");
        if let Some(file) = &quality.file {
            self.quality_file(&key, quality, file);
        }
        let lists = [
            ("rate", quality.rate.len()),
            ("loss", quality.loss.len()),
            ("delay", quality.delay.len()),
        ];
        if quality.file.is_none() && lists.iter().all(|(_, length)| *length == 0) {
            self.refuse(
                &key,
                "the quality has no quantiles",
                "write rate = [\"20 kbit/s\", \"60 kbit/s\"], or file = \"meters.csv\"",
            );
        }
        for (name, _) in lists.into_iter().filter(|(_, length)| *length == 1) {
            self.refuse(
                format!("{key}.{name}"),
                "a distribution needs at least two quantiles: minimum and maximum",
                format!("write a second value, or the key `{name}` of the direction"),
            );
        }
        self.ranks(&key, quality);
        if let Some(index) = quality.rate.iter().position(|rate| rate.as_bits_per_sec() == 0) {
            self.refuse(
                format!("{key}.rate[{index}]"),
                "a direction needs a rate above 0",
                "write the smallest rate of a member that is connected",
            );
        }
        let has_rate = direction.rate.as_bits_per_sec() > 0
            || direction.trace.is_some()
            || !direction.rate_change.is_empty();
        if !quality.rate.is_empty() && has_rate {
            self.refuse(
                format!("{key}.rate"),
                "the direction has another rate: `rate`, `rate_change`, `trace` or `power_line`",
                "remove it, or the quantiles of the rate",
            );
        }
        if !quality.loss.is_empty() && direction.loss.is_some() {
            self.refuse(
                format!("{key}.loss"),
                "the direction has both `loss` and quantiles of the loss",
                "remove one of both",
            );
        }
        if link.shared {
            self.refuse(
                key,
                "the members of a shared link have the same quality",
                "remove `shared`, or `quality`",
            );
        }
    }

    fn quality_file(&mut self, key: &str, quality: &LinkQuality, file: &str) {
        if file.trim().is_empty() {
            self.refuse(
                format!("{key}.file"),
                "the quality has an empty file name",
                "name a file, for example \"meters.csv\"",
            );
        }
        let has_lists = !(quality.rank.is_empty()
            && quality.rate.is_empty()
            && quality.loss.is_empty()
            && quality.delay.is_empty());
        if has_lists {
            self.refuse(
                format!("{key}.file"),
                "the quality has both a file and lists of quantiles",
                "write all quantiles in the file, or remove `file`",
            );
        }
    }

    fn ranks(&mut self, key: &str, quality: &LinkQuality) {
        let ranks: Vec<_> = quality.rank.iter().map(|rank| rank.ratio()).collect();
        let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else { return };
        let ascends = ranks.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || *first != 0.0 || *last != 1.0 {
            self.refuse(
                format!("{key}.rank"),
                "the ranks must ascend from 0 % to 100 %",
                "write rank = [\"0 %\", \"90 %\", \"100 %\"], or leave it out for equal steps",
            );
        }
        let lists = [
            ("rate", quality.rate.len()),
            ("loss", quality.loss.len()),
            ("delay", quality.delay.len()),
        ];
        for (name, length) in lists.into_iter().filter(|(_, length)| *length > 1) {
            if length != ranks.len() {
                self.refuse(
                    format!("{key}.{name}"),
                    format!("{length} values, but {} ranks", ranks.len()),
                    "write a value for each rank",
                );
            }
        }
    }
}
