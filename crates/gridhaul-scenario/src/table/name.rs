//! The tables and the columns that they have in addition to metrics.

use std::fmt;
use std::str::FromStr;

use crate::answer::{ColumnInfo, Scope};
use crate::scenario::suggest;

/// A table of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TableName {
    /// Flows and directions of links.
    #[default]
    Answers,
    /// Flows.
    Flows,
    /// Directions of links.
    Links,
    /// Swept keys and their values at each point.
    Parameters,
    /// Points of the sweep.
    Points,
    /// Flows and directions of links in each replication.
    Replications,
    /// Members of flows in each replication.
    Members,
}

/// Description of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableInfo {
    /// Meaning of a row.
    pub doc: &'static str,
    /// Metrics of the table, as a sentence; empty if it has none.
    pub metrics: &'static str,
    /// Columns after those of the swept keys and before the metrics.
    pub columns: &'static [ColumnInfo],
}

/// Columns with which every table begins; those of the swept keys follow.
const COMMON: [ColumnInfo; 3] = [
    ColumnInfo::new("answer", "string", "", "Name of the scenario or results folder."),
    ColumnInfo::new("backend", "string", "", "Backend that computed the answer."),
    ColumnInfo::new(
        "point",
        "uint64",
        "",
        "Point of the sweep, counted from 0; 0 without a sweep.",
    ),
];
const KIND: ColumnInfo = ColumnInfo::new("kind", "string", "", "`flow` or `link`.");
const NAME: ColumnInfo = ColumnInfo::new(
    "name",
    "string",
    "",
    "Name of the flow, or direction of a link: `<link>.forward`.",
);
const COUNT: ColumnInfo =
    ColumnInfo::new("count", "uint64", "", "Number of equal flows or links that share the row.");
const REPLICATION: ColumnInfo =
    ColumnInfo::new("replication", "uint64", "", "Number of the replication, from 0.");
const MEMBER: ColumnInfo =
    ColumnInfo::new("member", "uint64", "", "Member of the flow, counted from 0.");
const KEY: ColumnInfo = ColumnInfo::new("key", "string", "", "Swept key of the scenario.");
const VALUE: ColumnInfo =
    ColumnInfo::new("value", "string", "", "Value of the key as in the scenario, such as `40 ms`.");
const LABEL: ColumnInfo = ColumnInfo::new(
    "label",
    "string",
    "",
    "Label of the value, for sweep entries with `label`; otherwise empty.",
);
const NUMBER: ColumnInfo = ColumnInfo::new(
    "number",
    "double",
    "as in `unit`",
    "The value as a number in its base unit, such as 0.04.",
);
const UNIT: ColumnInfo =
    ColumnInfo::new("unit", "string", "", "Base unit, such as `s`; empty for pure numbers.");
const COLUMN: ColumnInfo = ColumnInfo::new(
    "column",
    "string",
    "",
    "Name of the column with the numbers in the other tables, `<key>_<unit>`; empty if the value \
     has no number.",
);
const DETERMINISTIC: ColumnInfo = ColumnInfo::new(
    "deterministic",
    "uint64",
    "",
    "1 if no random number influences the results of the point, else 0.",
);
const DISTURBED: ColumnInfo = ColumnInfo::new(
    "disturbed_count",
    "uint64",
    "",
    "Replications of an emulation during which the machine was too busy.",
);
const REPLICATIONS: ColumnInfo =
    ColumnInfo::new("replications_count", "uint64", "", "Finished replications.");

const MEANS: &str = "Each metric has three columns: its mean over the replications, `_ci95` (half \
                     width of the 95 % confidence interval of the mean) and `_n` (number of \
                     replications in which the quantity exists).";
const VALUES: &str = "Each metric has one column: its value in the replication.";

impl TableName {
    /// All tables.
    pub const ALL: [Self; 7] = [
        Self::Answers,
        Self::Flows,
        Self::Links,
        Self::Parameters,
        Self::Points,
        Self::Replications,
        Self::Members,
    ];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Flows => "flows",
            Self::Links => "links",
            Self::Parameters => "parameters",
            Self::Points => "points",
            Self::Replications => "replications",
            Self::Members => "members",
        }
    }

    /// Rows and columns.
    #[must_use]
    pub const fn info(self) -> TableInfo {
        match self {
            Self::Answers => TableInfo {
                doc: "A flow or a direction of a link at a point.",
                metrics: MEANS,
                columns: &[COMMON[0], COMMON[1], COMMON[2], KIND, NAME, COUNT],
            },
            Self::Flows => TableInfo {
                doc: "A flow at a point: the rows of `answers` with `kind` `flow`.",
                metrics: MEANS,
                columns: &[COMMON[0], COMMON[1], COMMON[2], NAME, COUNT],
            },
            Self::Links => TableInfo {
                doc: "A direction of a link at a point: the rows of `answers` with `kind` `link`.",
                metrics: MEANS,
                columns: &[COMMON[0], COMMON[1], COMMON[2], NAME, COUNT],
            },
            Self::Parameters => TableInfo {
                doc: "A swept key at a point: its value as text and as a number with its unit. The \
                      columns of swept keys are left out.",
                metrics: "",
                columns: &[
                    COMMON[0], COMMON[1], COMMON[2], KEY, VALUE, LABEL, NUMBER, UNIT, COLUMN,
                ],
            },
            Self::Points => TableInfo {
                doc: "A point of the sweep; without a sweep, the only row.",
                metrics: "",
                columns: &[COMMON[0], COMMON[1], COMMON[2], DETERMINISTIC, DISTURBED, REPLICATIONS],
            },
            Self::Replications => TableInfo {
                doc: "A flow or a direction of a link in one replication. Answers of a random \
                      scenario with several replications have this table if they were computed \
                      with `record.each_replication`.",
                metrics: VALUES,
                columns: &[COMMON[0], COMMON[1], COMMON[2], REPLICATION, KIND, NAME, COUNT],
            },
            Self::Members => TableInfo {
                doc: "A member of a flow in `record.members` in one replication. Simulator only.",
                metrics: VALUES,
                columns: &[COMMON[0], COMMON[1], COMMON[2], REPLICATION, NAME, MEMBER],
            },
        }
    }

    /// The scope of a table of flows or links; `None` for the other tables.
    #[must_use]
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Flows => Some(Scope::Flow),
            Self::Links => Some(Scope::Link),
            _ => None,
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TableName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|table| table.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name);
            format!("unknown table {text:?}: {}", suggest::remedy(text, &known))
        })
    }
}
