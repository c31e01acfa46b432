//! The answers to the requests of a page without a server.

use gridhaul::page_runs;
use gridhaul_explore::{
    Cancellation, Capture, CaptureOptions, Changes, Explorer, Request, Response, RunBackend,
    RunFailure, Runner, SimulatedCapture, Subject,
};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::Answer;

/// Answers the requests of one page.
pub struct PageModule(Result<Explorer, String>);

impl PageModule {
    /// A page about the built-in scenario.
    #[must_use]
    pub fn new() -> Self {
        Self(Subject::example().map(explorer))
    }

    /// The answer to a request, as the server of `gridhaul explore` reads it, without the token.
    ///
    /// `POST /scenario?name=FILE` with a scenario file as content has no equal at the server: the
    /// page is about this scenario from then on.
    pub fn answer(&mut self, mut request: &[u8]) -> Response {
        let mut request = match Request::read(&mut request) {
            Ok(request) => request,
            Err(error) => return Response::text("400 Bad Request", &error.to_string()),
        };
        request.path = request.path.trim_start_matches('/').to_owned();
        if request.path == "scenario" {
            return self.open(&request);
        }
        match &self.0 {
            Ok(explorer) => explorer.handle(&request, &Cancellation::default()),
            Err(error) => Response::text("500 Internal Server Error", error),
        }
    }

    fn open(&mut self, request: &Request) -> Response {
        let name = request.parameter("name").unwrap_or_default();
        match subject(&request.body, &name) {
            Ok(subject) => {
                self.0 = Ok(explorer(subject));
                Response::text("200 OK", "the page is about this scenario")
            }
            Err(message) => Response::text("422 Unprocessable Content", &message),
        }
    }
}

impl Default for PageModule {
    fn default() -> Self {
        Self::new()
    }
}

fn subject(toml: &[u8], name: &str) -> Result<Subject, String> {
    let text = std::str::from_utf8(toml).map_err(|_| format!("{name}: the file is not UTF-8"))?;
    let scenario = Scenario::from_toml(text, name).map_err(|error| error.to_string())?;
    Subject::of_scenario(&scenario, name)
}

fn explorer(subject: Subject) -> Explorer {
    Explorer::new(subject, Box::new(Library))
}

/// The library as the page uses it. A browser has no captures: its page has no files.
struct Library;

const NO_FILES: &str = "a page without a server reads no captures; use `gridhaul explore`";

impl Runner for Library {
    fn change(&self, scenario: &Scenario, changes: &Changes) -> Result<Scenario, String> {
        page_runs::change(scenario, changes)
    }

    fn run(
        &self,
        scenario: &Scenario,
        backend: RunBackend,
        cancellation: &Cancellation,
    ) -> Result<Answer, RunFailure> {
        page_runs::run(scenario, backend, cancellation)
    }

    fn open_captures(&self, _: &[String]) -> Result<Vec<gridhaul::capture::CaptureFile>, String> {
        Err(NO_FILES.to_owned())
    }

    fn simulate_capture(
        &self,
        _: &Capture,
        _: &CaptureOptions,
        _: &Cancellation,
    ) -> Result<SimulatedCapture, RunFailure> {
        Err(RunFailure::Refused(NO_FILES.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(module: &mut PageModule, method: &str, path: &str, body: &str) -> (String, String) {
        let length = body.len();
        let head = format!("{method} /{path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        let response = module.answer(format!("{head}{body}").as_bytes());
        (response.status.to_owned(), String::from_utf8(response.body).unwrap())
    }

    #[test]
    fn a_page_is_about_the_scenario_that_was_opened_last() {
        let mut module = PageModule::new();
        let text = "title = \"Short\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n[link.l]\n\
                    from = \"a\"\nto = \"b\"\nboth = { rate = \"1 Mbit/s\", delay = \"1 ms\" }\n\
                    [flow.f]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n";
        let (status, message) = answer(&mut module, "POST", "scenario?name=a.toml", text);
        assert_eq!(status, "200 OK", "{message}");
        let (_, subject) = answer(&mut module, "GET", "api/subject", "");
        assert!(subject.contains("\"title\":\"Short\""), "{subject}");
        let (status, run) = answer(&mut module, "POST", "api/run", "{}");
        assert_eq!(status, "200 OK");
        assert!(run.contains("gridhaul run a.toml --replications 1 --on sim,model"), "{run}");

        // The errors are those of the command line, and the page keeps its scenario.
        let (status, message) = answer(&mut module, "POST", "scenario?name=b.toml", "title = 1");
        assert_eq!(status, "422 Unprocessable Content");
        assert!(message.contains("b.toml"), "{message}");
        assert_eq!(answer(&mut module, "GET", "api/subject", "").1, subject);
    }
}
