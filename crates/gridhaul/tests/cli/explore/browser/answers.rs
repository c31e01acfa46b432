//! The answers in headless Chromium compared with those of the command line.

use super::Browser;
use crate::explore::page::Page;
use crate::explore::{SCENARIOS, printed_text};
use crate::support::{Desk, repository};

/// Moves the first two sliders of a page, and returns when the answer to the last move is drawn.
const MOVE: &str = "(async () => { const before = gridhaul.redraws; \
                    [...document.querySelectorAll('[type=range]')].slice(0, 2).forEach(range => { \
                    range.value = 137; \
                    range.dispatchEvent(new Event('input', { bubbles: true })); }); \
                    while (gridhaul.redraws === before || gridhaul.current.isRunning || \
                    gridhaul.current.wanted) await new Promise(done => setTimeout(done, 20)); \
                    return Object.keys(gridhaul.state.values).length; })()";

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn answers_of_ten_scenarios_are_those_of_the_command_line() {
    let mut browser = Browser::start();
    let files = SCENARIOS.map(|name| format!("{name}.toml"));
    for file in [String::new()].into_iter().chain(files) {
        let mut desk = Desk::new();
        if !file.is_empty() {
            let text = std::fs::read(repository().join("scenarios").join(&file)).unwrap();
            desk = desk.file(&file, text);
        }
        let page = Page::open(&desk, &file);
        browser.open(page.url());
        browser.wait_for(&format!(
            "location.href.startsWith('{}') && gridhaul.redraws > 0",
            page.url()
        ));
        assert!(browser.evaluate(MOVE).as_u64() > Some(0), "{file}: no slider has moved");
        let command = browser.evaluate("document.getElementById('command').textContent");
        let command = command.as_str().unwrap();
        // Without a file of its own, the command runs the scenario that the page copies.
        if command.starts_with("gridhaul run scenario.toml") {
            let toml = browser.evaluate("gridhaul.current.result.toml");
            desk = desk.file("scenario.toml", toml.as_str().unwrap());
        }
        let printed = printed_text(&desk, command);
        let equal = format!(
            "JSON.stringify([JSON.parse({})].flat()) === \
             JSON.stringify(gridhaul.current.result.answers)",
            serde_json::Value::from(printed)
        );
        assert_eq!(browser.evaluate(&equal), true, "{file}: {command}");
    }
}
