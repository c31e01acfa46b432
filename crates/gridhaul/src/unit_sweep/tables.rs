//! The tables of a sweep, written part by part, so that they may exceed the memory.

use std::io::{self, Write};

use gridhaul_data::table::TableWriter;
use gridhaul_scenario::answer::{Answer, Column, ColumnData, Metric};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::table::{Table, TableName};

/// Points of a part. The row groups of the files depend on this number, so it is a constant.
pub(super) const POINTS_PER_PART: usize = 1_000;

/// Writes one table of a sweep.
pub(super) struct SweepTable<W: Write + Send> {
    name: TableName,
    out: Option<W>,
    writer: Option<TableWriter<W>>,
    /// Columns of numbers of the whole sweep: a part may lack some of them.
    numbers: Vec<String>,
    /// Metrics of the whole sweep.
    metrics: Vec<Metric>,
    /// Number of the first point of the next part.
    next: usize,
}

impl<W: Write + Send> SweepTable<W> {
    pub(super) fn new(name: TableName, out: W, numbers: Vec<String>, scenario: &Scenario) -> Self {
        // Every row has all metrics, apart from collisions, which only shared media have, and from
        // those of attacks, of connections that open and close, of distributions, and of messages
        // that are acknowledged.
        let (has_collisions, has_attacks) =
            (!scenario.medium.is_empty(), !scenario.attack.is_empty());
        let has_connections = scenario.may_manage_connections();
        let (has_coap, acknowledges) = (scenario.may_use_coap(), scenario.may_acknowledge());
        let has_distributions = !scenario.record.distribution.is_empty();
        let is_column = |metric: &Metric| match metric {
            Metric::Collisions => has_collisions,
            metric if metric.is_of_connections() => has_connections,
            metric if metric.is_of_coap() => has_coap,
            metric if metric.is_of_acknowledgements() => has_coap || acknowledges,
            Metric::ConnectionsLost => has_connections || acknowledges,
            metric if metric.is_of_distributions() => has_distributions,
            metric => has_attacks || !metric.is_of_attacks(),
        };
        let metrics = Metric::ALL.iter().copied().filter(is_column).collect();
        Self { name, out: Some(out), writer: None, numbers, metrics, next: 0 }
    }

    /// Appends the points of `part`, an answer with the next points of the sweep.
    pub(super) fn write(&mut self, label: &str, part: &Answer) -> anyhow::Result<()> {
        let table = Table::new(self.name, &[(label.to_owned(), part)], &self.metrics)?;
        let columns = self.complete(table);
        self.next += part.points.len();
        if let Some(out) = self.out.take() {
            self.writer = Some(TableWriter::new(out, self.name.name(), &columns)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(columns)?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(writer) = self.writer {
            writer.finish()?.flush()?;
        }
        Ok(())
    }

    /// The columns of a part with the numbers of the points in the sweep, and with all columns of
    /// numbers in their order.
    fn complete(&self, table: Table) -> Vec<Column> {
        let rows = table.row_count();
        let (mut own, mut columns) = (Vec::new(), Vec::new());
        let mut place = 0;
        for mut column in table.columns {
            if column.name == "point"
                && let ColumnData::Whole(points) = &mut column.data
            {
                points.iter_mut().for_each(|point| *point += self.next as u64);
            }
            if self.numbers.contains(&column.name) {
                own.push(column);
                continue;
            }
            // The columns of numbers follow the texts of the swept keys.
            if matches!(column.name.as_str(), "replication" | "kind" | "name") && place == 0 {
                place = columns.len();
            }
            columns.push(column);
        }
        let numbers = self.numbers.iter().map(|name| {
            let found = own.iter().find(|column| column.name == *name).cloned();
            let unknown = || ColumnData::Real(vec![f64::NAN; rows]);
            found.unwrap_or_else(|| Column { name: name.clone(), data: unknown() })
        });
        columns.splice(place..place, numbers.collect::<Vec<_>>());
        columns
    }
}

/// An error of the writers as one of the input and output.
pub(super) fn io_error(error: anyhow::Error) -> io::Error {
    match error.downcast::<io::Error>() {
        Ok(error) => error,
        Err(error) => io::Error::other(format!("{error:#}")),
    }
}
