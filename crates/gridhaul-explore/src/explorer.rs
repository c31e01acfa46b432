//! The answers to requests.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::assets;
use crate::cancellation::{Cancellation, LatestRuns};
use crate::capture_view::{self, KeptSimulation};
use crate::http::{Request, Response};
use crate::packets_view::{self, PacketsRequest};
use crate::results_view;
use crate::runner::{RunFailure, Runner};
use crate::scenario_view::{self, RunRequest};
use crate::subject::Subject;

/// A page with its scenario, results or capture.
pub struct Explorer {
    subject: Subject,
    runner: Box<dyn Runner>,
    runs: LatestRuns,
    simulation: KeptSimulation,
}

/// The first answer to a page.
#[derive(Serialize)]
struct Opening<'a> {
    gridhaul: &'static str,
    /// Absent if the page is about a capture.
    scenario: Option<scenario_view::Description<'a>>,
    results: Option<results_view::Description<'a>>,
    capture: Option<capture_view::Description<'a>>,
}

impl Explorer {
    /// A page about a subject.
    #[must_use]
    pub fn new(subject: Subject, runner: Box<dyn Runner>) -> Self {
        Self { subject, runner, runs: LatestRuns::default(), simulation: KeptSimulation::default() }
    }

    /// The answer to a request, whose path is that of a file of the page. A run takes as long as on
    /// the command line, unless a later request cancels it, or the caller by `cancellation`.
    pub fn handle(&self, request: &Request, cancellation: &Cancellation) -> Response {
        match (&*request.method, &*request.path) {
            ("GET", "api/subject") => Response::json("200 OK", &self.opening()),
            ("POST", "api/run") => self.run(request, cancellation),
            ("POST", "api/packets") => self.packets(request, cancellation),
            ("GET", "api/results/table") => self.table(request),
            (_, path) if path.starts_with("api/capture/") => self.capture(request, cancellation),
            ("GET", path) => assets::file(path)
                .unwrap_or_else(|| Response::text("404 Not Found", "there is no such file")),
            _ => Response::text("405 Method Not Allowed", "the methods are GET and POST"),
        }
    }

    fn opening(&self) -> Opening<'_> {
        let Subject { results, capture, .. } = &self.subject;
        let is_of_scenario = capture.is_none();
        Opening {
            gridhaul: env!("CARGO_PKG_VERSION"),
            scenario: is_of_scenario.then(|| scenario_view::Description::of(&self.subject)),
            results: results.as_ref().map(results_view::Description::of),
            capture: capture.as_ref().map(capture_view::Description::of),
        }
    }

    fn run(&self, request: &Request, cancellation: &Cancellation) -> Response {
        let request: RunRequest = match parsed(request) {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
        self.runs.begin(&request.place, cancellation);
        let result = scenario_view::run(&self.subject, &request, &*self.runner, cancellation);
        result.map_or_else(failed, |result| Response::json("200 OK", &result))
    }

    fn packets(&self, request: &Request, cancellation: &Cancellation) -> Response {
        let request: PacketsRequest = match parsed(request) {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
        self.runs.begin(&request.place, cancellation);
        packets_view::packets(&self.subject, &request, &*self.runner, cancellation)
            .unwrap_or_else(failed)
    }

    fn capture(&self, request: &Request, cancellation: &Cancellation) -> Response {
        let Some(capture) = &self.subject.capture else {
            return Response::text("404 Not Found", "this page has no capture");
        };
        match (&*request.method, &*request.path) {
            ("GET", "api/capture/connection") => {
                let number = request.parameter("number").unwrap_or_default();
                capture_view::facts(capture, &number).unwrap_or_else(|message| refused(&message))
            }
            ("GET", "api/capture/connections.csv") => capture_view::csv(capture),
            ("POST", "api/capture/packets") => {
                let answer = parsed(request).and_then(|request: capture_view::PacketsRequest| {
                    self.runs.begin(&request.place, cancellation);
                    let (kept, runner) = (&self.simulation, &*self.runner);
                    capture_view::packets(capture, &request, kept, runner, cancellation)
                        .map_err(failed)
                });
                answer.unwrap_or_else(|refusal| refusal)
            }
            ("POST", "api/capture/simulation") => {
                let answer =
                    parsed(request).and_then(|request: capture_view::SimulationRequest| {
                        self.runs.begin(&request.place, cancellation);
                        let (kept, runner) = (&self.simulation, &*self.runner);
                        capture_view::summary(capture, &request, kept, runner, cancellation)
                            .map_err(failed)
                    });
                answer.unwrap_or_else(|refusal| refusal)
            }
            _ => Response::text("404 Not Found", "there is no such part of a capture"),
        }
    }

    fn table(&self, request: &Request) -> Response {
        let Some(results) = &self.subject.results else {
            return Response::text("404 Not Found", "this page has no results");
        };
        let parameter = |name| request.parameter(name).unwrap_or_default();
        match results_view::table(results, &parameter("table"), &parameter("only")) {
            Ok(table) => Response::json("200 OK", &table),
            Err(message) => refused(&message),
        }
    }
}

/// The contents of a request, which is JSON.
fn parsed<T: DeserializeOwned>(request: &Request) -> Result<T, Response> {
    serde_json::from_slice(&request.body).map_err(|error| refused(&error.to_string()))
}

/// The answer to a request whose run has none.
fn failed(failure: RunFailure) -> Response {
    match failure {
        RunFailure::Refused(message) => refused(&message),
        RunFailure::Cancelled => {
            Response::text("409 Conflict", "a later request has replaced this one")
        }
    }
}

/// The answer to a request that is permitted and not valid.
fn refused(message: &str) -> Response {
    Response::text("422 Unprocessable Content", message)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::runner::CancelledRunner;

    fn answer(method: &str, path: &str, body: &str) -> (&'static str, String) {
        let explorer = Explorer::new(
            Subject::example().unwrap(),
            Box::new(CancelledRunner(|cancellation| assert!(!cancellation.is_cancelled()))),
        );
        let length = body.len();
        let text = format!("{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
        let request = Request::read(&mut text.as_bytes()).unwrap();
        let response = explorer.handle(&request, &Cancellation::default());
        (response.status, String::from_utf8(response.body).unwrap())
    }

    #[test]
    fn the_page_and_its_files_are_served() {
        let (status, page) = answer("GET", "", "");
        assert_eq!(status, "200 OK");
        for name in page.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert_eq!(answer("GET", name, "").0, "200 OK", "{name}");
        }
        assert_eq!(answer("GET", "other", "").0, "404 Not Found");
        assert_eq!(answer("PUT", "", "").0, "405 Method Not Allowed");
    }

    #[test]
    fn a_run_that_is_refused_has_the_message_of_the_command_line() {
        let (status, body) = answer("POST", "api/run", r#"{"settings": ["a=1"]}"#);
        assert_eq!((status, &*body), ("422 Unprocessable Content", "there is no key a=1\n"));
        let (status, _) = answer("POST", "api/run", "no JSON");
        assert_eq!(status, "422 Unprocessable Content");
        assert_eq!(answer("POST", "api/run", "{}").0, "409 Conflict");
    }

    #[test]
    fn the_subject_lists_what_can_be_changed() {
        let (status, body) = answer("GET", "api/subject", "");
        assert_eq!(status, "200 OK");
        let subject: Value = serde_json::from_str(&body).unwrap();
        let controls = subject["scenario"]["controls"].as_array().unwrap();
        let ids: Vec<_> = controls.iter().map(|control| control["id"].as_str().unwrap()).collect();
        for id in ["link.feeder.rate", "link.feeder.delay", "link.feeder.loss"] {
            assert!(ids.contains(&id), "{ids:?}");
        }
        assert!(subject["results"].is_null());
        assert!(subject["capture"].is_null());
        assert_eq!(answer("GET", "api/results/table", "").0, "404 Not Found");
        for path in ["connection", "connections.csv", "packets", "simulation"] {
            let path = format!("api/capture/{path}");
            assert_eq!(answer("GET", &path, "").0, "404 Not Found", "{path}");
        }
    }
}
