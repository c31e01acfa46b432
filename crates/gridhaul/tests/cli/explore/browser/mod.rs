//! The page in headless Chromium, which moves a slider, keeps a variant and changes the view.

mod answers;
mod capture;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::page::Page;
use crate::support::{Desk, SMALL};

/// A browser that is controlled by the DevTools protocol: messages of JSON, each with a zero byte
/// at its end.
pub(super) struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Value,
    last: u64,
    /// Profile of the browser.
    _folder: tempfile::TempDir,
}

/// Time after which an expression has failed, in milliseconds. The simulator may have to share the
/// processor.
const PATIENCE_MS: u32 = 60_000;

impl Browser {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The browser reads messages from file 3 and writes to file 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec chromium \"$@\" 3<&0 4>&1 >/dev/null", "sh"]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
        command.arg("--remote-debugging-pipe");
        command.arg(format!("--user-data-dir={}", folder.path().display()));
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = piped.spawn().expect("sh runs");
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let output = BufReader::new(output);
        let session = Value::Null;
        let mut browser = Self { process, input, output, session, last: 0, _folder: folder };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        browser
    }

    /// The result of a command of the protocol.
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut text = Vec::new();
            self.output.read_until(0, &mut text).unwrap();
            text.pop();
            let expected = "chromium runs; install the Debian package chromium";
            let answer: Value = serde_json::from_slice(&text).expect(expected);
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// A size of the window, and the preferred colours.
    pub(super) fn set_window(&mut self, width: u32, is_dark: bool) {
        let size = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    pub(super) fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// Keeps files in the list `saved` instead of downloading them.
    fn keep_saved_files(&mut self) {
        self.evaluate(
            "window.saved = []; HTMLAnchorElement.prototype.click = () => {}; URL.createObjectURL \
             = blob => { saved.push(blob); return 'blob:none'; }; 0",
        );
    }

    /// The value of an expression in the page; promises are awaited.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page, and returns its value.
    pub(super) fn wait_for(&mut self, expression: &str) -> Value {
        let waiting = format!(
            "new Promise((resolve, reject) => {{ const end = Date.now() + {PATIENCE_MS}; const \
             look = () => {{ let found = null; try {{ found = {expression}; }} catch {{ }} if \
             (found) resolve(found); else if (Date.now() > end) reject(new \
             Error(document.body.innerText)); else setTimeout(look, 20); }}; look(); }})"
        );
        self.evaluate(&waiting)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sets the slider of a label to a position, as a user does.
pub(super) fn slide(label: &str, position: u32) -> String {
    format!(
        "(() => {{ const range = document.querySelector('[type=range][aria-label=\"{label}\"]'); \
         range.value = {position}; range.dispatchEvent(new Event('input', {{ bubbles: true }})); \
         return range.getAttribute('aria-valuetext'); }})()"
    )
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_slider_redraws_the_charts_and_the_address_keeps_its_value() {
    let desk = Desk::new();
    let page = Page::open(&desk, "");
    let mut browser = Browser::start();
    browser.set_window(1280, false);
    browser.open(page.url());
    browser.wait_for("gridhaul.redraws > 0");
    let charts = "document.querySelectorAll('#charts svg').length";
    assert_eq!(browser.evaluate(charts), 4);
    let command = "document.getElementById('command').textContent";
    assert_eq!(browser.evaluate(command), "gridhaul run scenario.toml --on sim,model");

    // The slider names its value to a screen reader, and the address keeps it.
    let before = browser.evaluate("gridhaul.redraws").as_u64().unwrap();
    let shown = browser.evaluate(&slide("Link feeder, rate", 100));
    assert_eq!(shown, "100 kbit/s");
    browser.wait_for(&format!("gridhaul.redraws > {before}"));
    let rate = "gridhaul.current.result.rates_bit_per_s[0][1]";
    assert_eq!(browser.evaluate(rate), 1e5);
    let address = browser.evaluate("new URLSearchParams(location.search).get('link.feeder.rate')");
    assert_eq!(address, "100 kbit/s");

    // The kept variant stays while the other one changes, and has the same random numbers.
    browser.evaluate("document.getElementById('pin').click()");
    let before = browser.evaluate("gridhaul.redraws").as_u64().unwrap();
    browser.evaluate(&slide("Link feeder, rate", 200));
    browser.wait_for(&format!("gridhaul.redraws > {before}"));
    let seeds = "[gridhaul.kept, gridhaul.current].map(own => own.result.answers[0].seed).join()";
    assert_eq!(browser.evaluate(seeds), "1,1");
    assert_eq!(browser.evaluate("gridhaul.kept.result.rates_bit_per_s[0][1]"), 1e5);
    assert_eq!(browser.evaluate(rate), 1e6);
    let live = "document.querySelector('[aria-live=polite]').textContent";
    browser.wait_for(&format!("{live}.includes('Variant A')"));

    // A reload has the same state.
    let url = browser.evaluate("location.href");
    browser.open(url.as_str().unwrap());
    browser.wait_for("gridhaul.redraws > 0 && gridhaul.kept.result && gridhaul.current.result");
    assert_eq!(browser.evaluate("gridhaul.kept.result.rates_bit_per_s[0][1]"), 1e5);
    assert_eq!(browser.evaluate(rate), 1e6);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_page_fits_a_phone_and_a_desktop_in_light_and_dark() {
    let desk = Desk::new().file("small.toml", SMALL.replace("wire", "a-wire-with-a-long-name"));
    let key = "link.a-wire-with-a-long-name.both.loss.bernoulli";
    let sweep = format!("sweep small.toml --vary '{key}=0.125 %,0.25 %' --quiet");
    assert_eq!(desk.run(&sweep).code, Some(0));
    let page = Page::open(&desk, "results/small-sweep");
    let mut browser = Browser::start();
    for (width, is_dark) in [(320, false), (320, true), (1280, false), (1280, true)] {
        browser.set_window(width, is_dark);
        browser.open(page.url());
        // The results are the first view of a results folder.
        browser.wait_for("document.querySelectorAll('#points tbody tr').length == 2");
        browser.wait_for("document.querySelector('#results-chart svg')");
        // Marked points are compared, and the address keeps them.
        browser.evaluate("document.querySelectorAll('#points input').forEach(own => own.click())");
        browser.wait_for("document.querySelectorAll('#compare tbody tr').length == 2");
        let marked = browser.evaluate("new URLSearchParams(location.search).get('r.compared')");
        assert_eq!(marked, "0 1");
        let excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.evaluate(excess), 0, "results, {width} pixels");
        browser.evaluate("document.getElementById('tab-scenario').click()");
        browser.wait_for("document.querySelectorAll('#charts svg').length >= 4");
        assert_eq!(browser.evaluate(excess), 0, "scenario, {width} pixels");
        let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
        assert_eq!(ground == "rgb(9, 12, 16)", is_dark, "{ground}");
        // Each input has a name for screen readers.
        let unnamed = "[...document.querySelectorAll('input, select, button')].filter(own => \
                       !own.getAttribute('aria-label') && !own.labels?.length && \
                       !own.textContent.trim()).length";
        assert_eq!(browser.evaluate(unnamed), 0);
    }
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_packets_of_the_present_values_are_drawn_and_a_key_shows_the_next_loss() {
    let desk = Desk::new();
    let page = Page::open(&desk, "");
    let mut browser = Browser::start();
    browser.set_window(390, true);
    browser.open(&format!("{}?view=packets&link.feeder.loss=2%20%25", page.url()));
    browser.wait_for("gridhaul.packets.chart.layers.retransmissions.length > 20");
    let canvas = "document.getElementById('packets-canvas')";
    let press = format!(
        "{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'n', bubbles: true }}))"
    );
    browser.evaluate(&press);
    browser.wait_for(
        "gridhaul.packets.chart.visibleEvents().some(own => own.event == 'segments_lost')",
    );
    assert_eq!(browser.evaluate("gridhaul.packets.chart.range[1] < 10"), true);
    let rows = "document.querySelectorAll('#packets-events tbody tr td:nth-child(2)').length";
    browser.wait_for(&format!("{rows} > 0"));
    let label = browser.evaluate(&format!("{canvas}.getAttribute('aria-label')"));
    assert!(label.as_str().unwrap().contains("retransmissions"), "{label}");
    let excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.evaluate(excess), 0);
}

/// Each move asks for a run: if each cancelled the one before, nothing would be drawn until the
/// slider rests.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn charts_are_redrawn_while_a_slider_moves() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    let mut browser = Browser::start();
    browser.open(page.url());
    browser.wait_for("gridhaul.redraws > 0");
    let moves = "(async () => { const before = gridhaul.redraws; \
                 const range = document.querySelector('[type=range]'); \
                 for (let step = 0; step < 200; step += 1) { range.value = 150 + step % 50; \
                 range.dispatchEvent(new Event('input', { bubbles: true })); \
                 await new Promise(resolve => setTimeout(resolve, 10)); } \
                 return gridhaul.redraws - before; })()";
    let redraws = browser.evaluate(moves).as_u64().unwrap();
    assert!(redraws >= 3, "{redraws} redraws in two seconds");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn saved_charts_have_their_numbers_and_the_command_that_makes_them() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    let mut browser = Browser::start();
    browser.open(page.url());
    browser.wait_for("gridhaul.redraws > 0");
    browser.keep_saved_files();
    let buttons = "document.querySelectorAll('#charts figure button')";
    browser.evaluate(&format!("{buttons}.forEach(own => own.click())"));
    browser.wait_for("saved.length == 8");
    let texts = browser.evaluate("Promise.all(saved.map(blob => blob.text()))");
    let texts: Vec<&str> = texts.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let of_kind = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
    assert_eq!((of_kind("<svg"), texts.len()), (4, 8));
    let command = "<desc>gridhaul run small.toml --replications 1 --series '10 ms'</desc>";
    let charts = texts.iter().filter(|text| text.starts_with("<svg"));
    assert!(charts.clone().all(|text| text.contains(command)), "{texts:?}");
    assert!(charts.clone().all(|text| text.contains(".gh-s0{color:")), "colours are inside");
    let windows = texts.iter().find(|text| text.contains("cwnd_byte")).unwrap();
    let mut lines = windows.split("\r\n");
    assert_eq!(lines.next(), Some("simulator time_s,simulator cwnd_byte"));
    assert_eq!(lines.filter(|line| !line.is_empty()).count(), 501, "5 s at 10 ms");
}

/// A frame draws columns of pixels, not packets. The limit holds on a busy machine: drawing each
/// packet would take seconds.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_million_packets_are_panned_without_drawing_each() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    let mut browser = Browser::start();
    browser.set_window(1280, false);
    browser.open(page.url());
    browser.wait_for("gridhaul.redraws > 0");
    let script = "(async () => {
        const { CanvasPen, PacketsChart, Ranges } = await import('./packets_chart.js');
        const made = (count, length) => {
            const [time, start, end] = [0, 1, 2].map(() => new Float64Array(count));
            for (let index = 0; index < count; index += 1) {
                time[index] = index * 60 / count;
                start[index] = index * 1460 * 1e6 / count + 5e5 * Math.sin(index / 1e4);
                end[index] = start[index] + length;
            }
            return new Ranges(time, start, end);
        };
        const [first, acks] = [made(1e6, 1460), made(5e5, 3e6)];
        const [sack, retransmissions] = [made(1e5, 3e4), made(1e4, 1460)];
        const layers = { first, acks, window: acks, sack, retransmissions };
        const chart = new PacketsChart(layers, [], 60);
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [1200, 520];
        const pen = new CanvasPen(canvas.getContext('2d'), Array(8).fill('#000'));
        const times = [];
        for (let frame = 0; frame < 60; frame += 1) {
            if (frame === 30) chart.zoom(0.5);
            chart.move(0.01);
            const begin = performance.now();
            chart.draw(pen, 1200, 520);
            pen.context.getImageData(0, 0, 1, 1);
            times.push(performance.now() - begin);
        }
        return times.sort((a, b) => a - b)[30];
    })()";
    let median_ms = browser.evaluate(script).as_f64().unwrap();
    eprintln!("a frame of a million packets: {median_ms:.1} ms (median of 60)");
    assert!(median_ms < 100.0, "{median_ms} ms");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_page_of_another_site_cannot_start_a_run() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    // Another server of this machine is another origin, even if it has learned the token.
    let foreign = Page::open(&desk, "small.toml");
    let mut browser = Browser::start();
    browser.open(foreign.url());
    browser.wait_for("gridhaul.redraws > 0");
    let url = page.url();
    let attempt = format!(
        "fetch('{url}api/run', {{ method: 'POST', headers: {{ 'Content-Type': \
         'application/json' }}, body: '{{}}' }}).then(() => 'answered', () => 'refused')"
    );
    assert_eq!(browser.evaluate(&attempt), "refused");
    // Without the policy of the foreign page, the rules of this server decide.
    browser.open("data:text/html,<p>foreign</p>");
    browser.wait_for("location.protocol == 'data:'");
    assert_eq!(browser.evaluate(&attempt), "refused");
    let opaque = format!(
        "fetch('{url}api/run', {{ method: 'POST', mode: 'no-cors', body: '{{}}' }}).then(answer \
         => answer.type, () => 'refused')"
    );
    let found = browser.evaluate(&opaque);
    assert!(found == "opaque" || found == "refused", "the answer is not readable: {found}");
}
