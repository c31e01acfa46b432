//! The answers of the module compared with those of the native code, byte by byte.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{iter, str};

use anyhow::{Context, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gridhaul_web::PageModule;
use serde_json::{Value, json};

use crate::read;

/// A request of the page.
struct Request {
    method: &'static str,
    path: String,
    body: String,
}

/// The answer to a request.
struct Answer {
    status: u64,
    body: Vec<u8>,
    milliseconds: f64,
}

impl Answer {
    /// Whether the answer is the error that a file of the scenario, such as a trace, is missing.
    fn needs_file(&self) -> bool {
        self.status != 200 && String::from_utf8_lossy(&self.body).contains("cannot read this file")
    }
}

/// The script that instantiates the module in Node.js.
const NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node/answers.mjs");

/// Largest difference of a number that the equations compute: relative to it, or absolute if it is
/// below 1, because small ratios and residuals are differences of numbers near 1. The equations use
/// logarithms and powers of the C library, and the module those of Rust's `compiler_builtins`: the
/// last digits may differ. The simulator uses operations that IEEE 754 defines exactly.
const EQUATIONS_DIFFERENCE_MAX: f64 = 1e-12;

/// Compares the answers for each scenario file: the description, a run on simulator and equations
/// with its series, a run of two replications with another seed, and the packets of a connection.
///
/// # Errors
/// Answers differ, no scenario was simulated, or the module fails.
pub(crate) fn compare(module: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    println!("{:<28} {:>9} {:>10} {:>13}", "scenario", "bytes", "native", "WebAssembly");
    let mut differences = Vec::new();
    let (mut simulated, mut same) = (0, 0);
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let scenario = read(file)?;
        let scenario = str::from_utf8(&scenario).with_context(|| format!("{name} is not UTF-8"))?;
        let (requests, native) = native(&name, scenario);
        let web = web(module, &requests)?;
        ensure!(web.len() == native.len(), "{name}: {} answers of the module", web.len());
        let pairs = || iter::zip(&native, &web);
        let is_same = pairs().all(|(native, web)| native.body == web.body);
        // Neither of them reads files here, and the reasons that systems give for this differ.
        if pairs().any(|(native, web)| native.needs_file() && web.needs_file()) {
            println!("{name:<28} {:>9} {:>13} {:>16}  needs a file", "", "", "");
            continue;
        }
        let is_simulated = native[2].status == 200;
        simulated += usize::from(is_simulated);
        same += usize::from(is_same && is_simulated);
        let result = match (is_simulated, is_same) {
            (false, _) => "not simulated",
            (true, true) => "same bytes",
            (true, false) => "same bytes but the last digits of the equations",
        };
        let time = |answers: &[Answer]| answers.iter().map(|own| own.milliseconds).sum::<f64>();
        let bytes: usize = native.iter().map(|answer| answer.body.len()).sum();
        let (native_ms, web_ms) = (time(&native), time(&web));
        println!("{name:<28} {bytes:>9} {native_ms:>7.0} ms {web_ms:>10.0} ms  {result}");
        differences.extend(requests.iter().zip(pairs()).filter_map(|(request, (native, web))| {
            Some(format!("{name}, {}: {}", request.path, difference(native, web)?))
        }));
    }
    ensure!(differences.is_empty(), "answers differ:\n{}", differences.join("\n"));
    // A module and native code that refuse every run have equal answers, too.
    ensure!(simulated > 0, "no scenario was simulated: the comparison shows nothing");
    println!("{same} of {} scenarios are simulated and give the same bytes", files.len());
    Ok(())
}

/// The requests for a scenario, and the answers of the native code to them.
fn native(name: &str, scenario: &str) -> (Vec<Request>, Vec<Answer>) {
    let mut module = PageModule::new();
    let mut requests = vec![
        Request { method: "POST", path: format!("scenario?name={name}"), body: scenario.into() },
        Request { method: "GET", path: "api/subject".to_owned(), body: String::new() },
        Request::post("api/run", &json!({})),
        Request::post("api/run", &json!({ "seed": 7, "replications": 2 })),
    ];
    let mut answers: Vec<_> = requests.iter().map(|request| request.answer(&mut module)).collect();
    let subject = serde_json::from_slice(&answers[1].body).unwrap_or(Value::Null);
    let flows = subject["scenario"]["flows"].as_array();
    let drawable = flows.into_iter().flatten().find(|flow| flow["has_packets"] == true);
    if let Some(flow) = drawable {
        let packets = Request::post("api/packets", &json!({ "flow": flow["name"] }));
        answers.push(packets.answer(&mut module));
        requests.push(packets);
    }
    (requests, answers)
}

impl Request {
    fn post(path: &str, body: &Value) -> Self {
        Self { method: "POST", path: path.to_owned(), body: body.to_string() }
    }

    fn to_json(&self) -> Value {
        json!({ "method": self.method, "path": self.path, "body": self.body })
    }

    #[expect(clippy::disallowed_methods, reason = "the time is printed, and decides nothing")]
    fn answer(&self, module: &mut PageModule) -> Answer {
        let Self { method, path, body } = self;
        let begin = Instant::now();
        let length = body.len();
        let head = format!("{method} /{path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        let response = module.answer(format!("{head}{body}").as_bytes());
        let code = response.status.split(' ').next().and_then(|code| code.parse().ok());
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        Answer { status: code.unwrap_or(500), body: response.body, milliseconds }
    }
}

/// The answers of a new instance of the module.
fn web(module: &Path, requests: &[Request]) -> anyhow::Result<Vec<Answer>> {
    let requests = requests.iter().map(Request::to_json).collect();
    let requests = Value::Array(requests);
    let mut node = Command::new("node")
        .args([Path::new(NODE), module])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start node")?;
    // The end of the input starts the work.
    let mut input = node.stdin.take().context("node has no input")?;
    input.write_all(requests.to_string().as_bytes())?;
    drop(input);
    let output = node.wait_with_output()?;
    ensure!(output.status.success(), "the module has failed: {}", output.status);
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let answer = |answer: &Value| {
        let body = answer["body"].as_str().context("no content")?;
        Ok(Answer {
            status: answer["status"].as_u64().context("no status")?,
            body: BASE64_STANDARD.decode(body).ok().context("the content is not base64")?,
            milliseconds: answer["milliseconds"].as_f64().context("no time")?,
        })
    };
    answers.iter().map(answer).collect()
}

/// The first difference of two answers, with the bytes around it.
fn difference(native: &Answer, web: &Answer) -> Option<String> {
    if native.status != web.status {
        return Some(format!("status {} natively, {} of the module", native.status, web.status));
    }
    if native.body == web.body || differs_by_equations_only(&native.body, &web.body) {
        return None;
    }
    let equal = iter::zip(&native.body, &web.body).take_while(|(a, b)| a == b).count();
    let around = |body: &[u8]| {
        let part = &body[equal.saturating_sub(60)..body.len().min(equal + 40)];
        String::from_utf8_lossy(part).into_owned()
    };
    let (native, web) = (around(&native.body), around(&web.body));
    Some(format!("from byte {equal} on:\n  native: {native}\n  module: {web}"))
}

/// Whether two results of a run differ only in the last digits of the second answer, which is that
/// of the equations.
fn differs_by_equations_only(native: &[u8], web: &[u8]) -> bool {
    let parsed = |body| serde_json::from_slice::<Value>(body).ok();
    let Some((mut native, mut web)) = parsed(native).zip(parsed(web)) else { return false };
    let answer = |result: &mut Value| Some(result.get_mut("answers")?.get_mut(1)?.take());
    let answers = answer(&mut native).zip(answer(&mut web));
    native == web && answers.is_some_and(|(native, web)| is_close(&native, &web))
}

/// Whether two values are equal but for the last digits of numbers.
fn is_close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && iter::zip(a, b).all(|(a, b)| is_close(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_close = |((a_key, a), (b_key, b)): ((&String, &Value), (&String, &Value))| {
                a_key == b_key && is_close(a, b)
            };
            a.len() == b.len() && iter::zip(a, b).all(is_close)
        }
        (Value::Number(a), Value::Number(b)) => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| {
            (a - b).abs() <= EQUATIONS_DIFFERENCE_MAX * a.abs().max(b.abs()).max(1.0)
        }),
        (a, b) => a == b,
    }
}
