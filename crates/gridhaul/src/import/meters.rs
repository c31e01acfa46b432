//! Import of a table of meters: feeder, coordinates and class of each, as groups of a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gridhaul_scenario::scenario::PowerLineClass;
use gridhaul_scenario::units::{BitRate, Bytes, Duration};

use super::{File, ImportError};

/// Values that the table does not contain.
#[derive(Debug, Clone)]
pub struct Options {
    /// Class of the power lines between meters and feeder.
    pub power_line: PowerLineClass,
    /// Rate and delay of the line from each feeder to the centre.
    pub rate: BitRate,
    /// Delay of this line.
    pub delay: Duration,
    /// Size of a report of a meter.
    pub size: Bytes,
    /// Time between two reports.
    pub every: Duration,
}

/// A meter of the table.
#[derive(Debug)]
struct Meter {
    feeder: String,
    class: String,
    place: Place,
}

/// Coordinates in metres, or in degrees as long as they are not projected.
#[derive(Debug, Clone, Copy)]
struct Place {
    east: f64,
    north: f64,
}

/// Length of a degree of latitude in metres (WGS 84, mean).
const DEGREE: f64 = 111_195.0;

/// Node to which all meters send.
const CENTRE: &str = "centre";

/// A class with which a row is the head of its feeder, and no meter.
const HEAD: &str = "head";

/// The scenario of a table, as TOML.
///
/// # Errors
/// A missing column, or a row without a name or a number.
pub fn import(file: File<'_>, options: &Options) -> Result<String, ImportError> {
    let meters = read(file)?;
    let mut feeders: BTreeMap<&str, Vec<&Meter>> = BTreeMap::new();
    for meter in &meters {
        feeders.entry(&meter.feeder).or_default().push(meter);
    }
    let Options { power_line, rate, delay, size, every } = options;
    let class = match power_line {
        PowerLineClass::Narrowband => "narrowband",
        PowerLineClass::Broadband => "broadband",
        PowerLineClass::FutureBroadband => "future-broadband",
    };
    let count = meters.iter().filter(|meter| meter.class != HEAD).count();
    let mut nodes = String::from("\n[node]\ncentre = {}\n");
    let mut links = String::new();
    let mut flows = String::new();
    let mut names = BTreeSet::from([CENTRE.to_owned()]);
    let mut take = |name: String| match names.insert(name.clone()) {
        true => Ok(()),
        false => {
            let message = format!("two nodes of the scenario would have the name {name}");
            Err(file.error("feeder and class", message, "rename the feeder or the class"))
        }
    };
    for (feeder, rows) in &feeders {
        let (head, head_source) = head(rows);
        take((*feeder).to_owned())?;
        let _ = writeln!(nodes, "{feeder} = {{}}");
        let _ = write!(
            links,
            "\n[link.{feeder}]\nfrom = \"{feeder}\"\nto = \"centre\"\n# the options --rate and \
             --delay\n\
             both = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n"
        );
        let mut classes: BTreeMap<&str, Vec<&&Meter>> = BTreeMap::new();
        for meter in rows.iter().filter(|meter| meter.class != HEAD) {
            classes.entry(&meter.class).or_default().push(meter);
        }
        for (name, group) in classes {
            take(format!("{feeder}-{name}"))?;
            let members = group.len();
            let distances = group.iter().map(|meter| meter.place.distance(head));
            let mean = (distances.sum::<f64>() / members as f64).round().max(1.0);
            let _ = writeln!(nodes, "# {members} rows\n{feeder}-{name} = {{ count = {members} }}");
            let _ = write!(
                links,
                "\n[link.{feeder}-{name}]\nfrom = \"{feeder}-{name}\"\nto = \"{feeder}\"\nshared \
                 = true\n\
                 # mean distance of the {members} meters from {head_source}; the option \
                 --power-line\n\
                 power_line = {{ class = \"{class}\", distance = \"{mean} m\" }}\n"
            );
            let _ = write!(
                flows,
                "\n[flow.{feeder}-{name}]\nfrom = \"{feeder}-{name}\"\nto = \"centre\"\n\
                 # the options --size and --every\n\
                 load = {{ periodic = {{ size = \"{size}\", every = \"{every}\" }} }}\n"
            );
        }
    }
    let duration = Duration::from_nanos(every.as_nanos().saturating_mul(2));
    let title = toml::Value::from(format!("{count} meters of {}", file.name));
    Ok(format!(
        "# Imported from {}: {count} meters on {} feeders. Meters of a feeder and class share \
         one power \
         line.\ntitle = {title}\n# two reports of each meter\nduration = \"{duration}\"\n\
         {nodes}{links}{flows}",
        file.name,
        feeders.len()
    ))
}

/// The head of a feeder: the row of class `head`, or the middle of its meters.
fn head(rows: &[&Meter]) -> (Place, &'static str) {
    if let Some(head) = rows.iter().find(|row| row.class == HEAD) {
        return (head.place, "the row of class \"head\"");
    }
    let count = rows.len() as f64;
    let mean = |coordinate: fn(&Place) -> f64| {
        rows.iter().map(|row| coordinate(&row.place)).sum::<f64>() / count
    };
    (
        Place { east: mean(|place| place.east), north: mean(|place| place.north) },
        "the middle of the feeder",
    )
}

/// The columns of a table.
struct Columns {
    headers: csv::StringRecord,
    feeder: usize,
    /// Coordinates: in metres, or in degrees.
    east: usize,
    north: usize,
    is_metres: bool,
    class: Option<usize>,
}

fn read(file: File<'_>) -> Result<Vec<Meter>, ImportError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file.text.as_bytes());
    let headers = reader.headers().cloned().map_err(|error| {
        file.error("line 1", format!("expected names of columns: {error}"), "give a table in CSV")
    })?;
    let columns = Columns::new(file, headers)?;
    let mut meters = Vec::new();
    // Texts of the table by the names of the scenario.
    let mut feeders: BTreeMap<String, String> = BTreeMap::new();
    let mut heads = BTreeSet::new();
    // The first place of each feeder.
    let mut origins: BTreeMap<String, Place> = BTreeMap::new();
    for row in reader.records() {
        let row = row.map_err(|error| {
            let number = line_of(file.text, error.position());
            file.error(&format!("line {number}"), error.to_string(), "repair the row")
        })?;
        let line = format!("line {}", line_of(file.text, row.position()));
        let place = columns.place(file, &row, &line)?;
        let name = |text: &str| {
            node_name(text).ok_or_else(|| {
                file.error(
                    &line,
                    format!("expected a name, found {text:?}"),
                    "give each row a feeder",
                )
            })
        };
        let text = row.get(columns.feeder).unwrap_or_default();
        let feeder = name(text)?;
        let known = feeders.entry(feeder.clone()).or_insert_with(|| text.to_owned());
        if known != text {
            let message = format!("feeders {known:?} and {text:?} both have the name {feeder}");
            let help = "rename one: only letters and digits count, in lower case";
            return Err(file.error(&line, message, help));
        }
        let class = columns.class.and_then(|class| row.get(class));
        let class = match class.filter(|text| !text.is_empty()) {
            Some(class) => name(class)?,
            None => "meter".to_owned(),
        };
        if class == HEAD && !heads.insert(feeder.clone()) {
            let message = format!("feeder {text:?} has two rows of class \"head\"");
            return Err(file.error(&line, message, "keep one head for each feeder"));
        }
        let origin = *origins.entry(feeder.clone()).or_insert(place);
        let place = if columns.is_metres { place } else { place.around(origin) };
        meters.push(Meter { feeder, class, place });
    }
    if meters.iter().all(|meter| meter.class == HEAD) {
        return Err(file.error("the file", "the table has no meters", "give a row for each meter"));
    }
    Ok(meters)
}

impl Columns {
    fn new(file: File<'_>, headers: csv::StringRecord) -> Result<Self, ImportError> {
        let column = |names: &[&str]| {
            let is_named =
                |header: &str| names.iter().any(|name| header.eq_ignore_ascii_case(name));
            headers.iter().position(is_named)
        };
        let required = |names: &[&str]| {
            column(names).ok_or_else(|| {
                let message = format!("no column {}", names.join(" or "));
                let help = "name the columns feeder, x_m and y_m or lat and lon, class";
                file.error("line 1", message, help)
            })
        };
        let feeder = required(&["feeder"])?;
        let is_metres = column(&["x_m", "x"]).is_some();
        let [east, north] = if is_metres {
            [required(&["x_m", "x"])?, required(&["y_m", "y"])?]
        } else {
            [required(&["lon", "longitude"])?, required(&["lat", "latitude"])?]
        };
        let class = column(&["class"]);
        Ok(Self { feeder, east, north, is_metres, class, headers })
    }

    /// The coordinates of a row, which are not projected yet.
    fn place(
        &self,
        file: File<'_>,
        row: &csv::StringRecord,
        line: &str,
    ) -> Result<Place, ImportError> {
        let number = |column: usize| {
            let text = row.get(column).unwrap_or_default();
            text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
                let message =
                    format!("{}: expected a number, found {text:?}", &self.headers[column]);
                file.error(line, message, "give coordinates in metres or degrees")
            })
        };
        let (east, north) = (number(self.east)?, number(self.north)?);
        if !self.is_metres && (north.abs() > 90.0 || east.abs() > 180.0) {
            let message = format!("no place has latitude {north} and longitude {east}");
            let help = "give a latitude from -90 to 90 and a longitude from -180 to 180 degrees";
            return Err(file.error(line, message, help));
        }
        Ok(Place { east, north })
    }
}

/// Line of a row: quoted cells of earlier rows may span lines, and the empty lines before a row
/// belong to its position.
fn line_of(text: &str, position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 0 };
    let rest = text.get(position.byte() as usize..).unwrap_or_default();
    let blank = rest.bytes().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + blank.filter(|byte| *byte == b'\n').count() as u64
}

/// A name of a node: letters, digits and hyphens of a text.
fn node_name(text: &str) -> Option<String> {
    let name: String = text
        .chars()
        .map(
            |letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' },
        )
        .collect();
    let name = name.trim_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

impl Place {
    /// Metres east and north of an origin, of degrees: on the plane that touches the earth there,
    /// which is exact enough for the lengths of feeders.
    fn around(self, origin: Self) -> Self {
        // The shorter way, also across the antimeridian.
        let degrees = self.east - origin.east;
        let degrees = degrees - 360.0 * (degrees / 360.0).round();
        Self {
            east: degrees * DEGREE * origin.north.to_radians().cos(),
            north: (self.north - origin.north) * DEGREE,
        }
    }

    fn distance(self, other: Self) -> f64 {
        (self.east - other.east).hypot(self.north - other.north)
    }
}
