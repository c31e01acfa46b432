//! A scenario of one link between a client and a server, with the source of each number.

use std::fmt::Write;

use gridhaul_scenario::units::{BitRate, Duration};

/// A value and its source.
#[derive(Debug, Clone)]
pub(super) struct Sourced<T> {
    pub(super) value: T,
    pub(super) source: String,
}

/// A direction of the link.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    pub(super) rate: Sourced<BitRate>,
    pub(super) delay: Sourced<Duration>,
    /// The key `loss`, as TOML.
    pub(super) loss: Option<Sourced<String>>,
    /// The key `jitter`, as TOML.
    pub(super) jitter: Option<Sourced<String>>,
    /// The key `queue`.
    pub(super) queue: Option<Sourced<String>>,
}

/// A flow.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) source: String,
    /// Whether the client sends the data.
    pub(super) is_upload: bool,
    pub(super) stack: Option<String>,
    /// The key `load`, as TOML.
    pub(super) load: String,
}

/// A stack.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) name: String,
    pub(super) keys: Vec<Sourced<String>>,
}

/// The end at which packets are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePoint {
    /// The end that opens the connections.
    Client,
    /// The other end.
    Server,
}

/// Name of the link on which packets are captured, and of the node at its other end.
pub(crate) const TAP: &str = "tap";

/// A scenario of one link.
#[derive(Debug, Clone)]
pub(super) struct LinkScenario {
    /// Lines of the comment at its beginning.
    pub(super) origin: Vec<String>,
    pub(super) title: String,
    pub(super) duration: Duration,
    /// From the client to the server, and back.
    pub(super) forward: Direction,
    pub(super) reverse: Direction,
    pub(super) stacks: Vec<Stack>,
    pub(super) flows: Vec<Flow>,
    /// The end at which a link without delay, on which packets are captured, is added.
    pub(super) capture_point: Option<CapturePoint>,
}

impl LinkScenario {
    /// The scenario as TOML.
    pub(super) fn to_toml(&self) -> String {
        let mut text = String::new();
        for line in &self.origin {
            let _ = writeln!(text, "# {line}");
        }
        let title = toml::Value::from(self.title.as_str());
        let _ = write!(
            text,
            "title = {title}\nduration = \"{}\"\nwarmup = \"0 s\"\n\n\
             [node]\nclient = {{}}\nserver = {{}}\n",
            self.duration
        );
        let [from, to] = match self.capture_point {
            None => ["client", "server"],
            Some(CapturePoint::Client) => [TAP, "server"],
            Some(CapturePoint::Server) => ["client", TAP],
        };
        if let Some(point) = self.capture_point {
            let end = match point {
                CapturePoint::Client => "client",
                CapturePoint::Server => "server",
            };
            let _ = write!(
                text,
                "{TAP} = {{}}\n\n[link.{TAP}]\nfrom = \"{end}\"\nto = \"{TAP}\"\n\
                 both = {{ rate = \"100 Gbit/s\", delay = \"0 s\", queue = \"unlimited\" }}\n"
            );
        }
        let _ = write!(text, "\n[link.path]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        for (name, direction) in [("forward", &self.forward), ("reverse", &self.reverse)] {
            let _ = writeln!(text, "\n[link.path.{name}]");
            direction.write(&mut text);
        }
        for Stack { name, keys } in &self.stacks {
            let _ = writeln!(text, "\n[stack.{name}]");
            for Sourced { value, source } in keys {
                let _ = writeln!(text, "# {source}\n{value}");
            }
        }
        for flow in &self.flows {
            let ends = if flow.is_upload { ["client", "server"] } else { ["server", "client"] };
            let stack =
                flow.stack.as_ref().map_or(String::new(), |name| format!("stack = \"{name}\"\n"));
            let _ = write!(
                text,
                "\n# {}\n[flow.{}]\nfrom = \"{}\"\nto = \"{}\"\n{stack}load = {}\n",
                flow.source, flow.name, ends[0], ends[1], flow.load
            );
        }
        text
    }
}

impl Direction {
    fn write(&self, text: &mut String) {
        let Self { rate, delay, loss, jitter, queue } = self;
        let _ = writeln!(text, "# {}\nrate = \"{}\"", rate.source, rate.value);
        let _ = writeln!(text, "# {}\ndelay = \"{}\"", delay.source, delay.value);
        for (key, value) in [("loss", loss), ("jitter", jitter), ("queue", queue)] {
            if let Some(Sourced { value, source }) = value {
                let _ = writeln!(text, "# {source}\n{key} = {value}");
            }
        }
    }
}

/// A rate in whole bit/s of a number.
pub(super) fn rate(bit_per_s: f64) -> BitRate {
    BitRate::from_bits_per_sec(bit_per_s.round().max(1.0) as u64)
}

/// A delay in whole microseconds, which is as much as captures and logs show.
pub(super) fn delay(seconds: f64) -> Duration {
    Duration::from_micros((seconds.max(0.0) * 1e6).round() as u64)
}

/// The key `loss` for a probability, with four digits.
pub(super) fn bernoulli(probability: f64) -> String {
    format!("{{ bernoulli = \"{} %\" }}", percent(probability))
}

/// A probability in per cent with four digits.
pub(super) fn percent(probability: f64) -> String {
    let percent = (probability * 1e6).round() / 1e4;
    format!("{percent}")
}
