//! The page without a server in headless Chromium, opened from a folder.

use crate::explore::browser::{Browser, slide};
use crate::explore::printed_text;
use crate::support::{Desk, SMALL};

/// Whether the answers in the page are those of the command line.
fn has_answers_of_the_command_line(browser: &mut Browser) -> bool {
    let toml = browser.evaluate("gridhaul.current.result.toml");
    let desk = Desk::new().file("scenario.toml", toml.as_str().unwrap());
    let printed = printed_text(&desk, "gridhaul run scenario.toml --on sim,model");
    let equal = format!(
        "JSON.stringify(JSON.parse({})) === JSON.stringify(gridhaul.current.result.answers)",
        serde_json::Value::from(printed)
    );
    browser.evaluate(&equal) == true
}

#[test]
#[ignore = "needs the page and a browser: cargo xtask web --check"]
fn a_page_from_a_folder_has_the_answers_of_the_command_line() {
    let path = std::env::var("GRIDHAUL_WEB_PAGE").expect("GRIDHAUL_WEB_PAGE names the page");
    let mut browser = Browser::start();
    for (width, is_dark) in [(320, true), (1280, false)] {
        browser.set_window(width, is_dark);
        browser.open(&format!("file://{path}"));
        browser.wait_for("gridhaul.redraws > 0");
        assert_eq!(browser.evaluate("document.querySelectorAll('#charts svg').length"), 4);
        assert!(has_answers_of_the_command_line(&mut browser), "the built-in scenario");

        browser.evaluate("gridhaul.redraws = 0");
        assert_eq!(browser.evaluate(&slide("Link feeder, rate", 100)), "100 kbit/s");
        browser.wait_for("gridhaul.redraws > 0 && !gridhaul.current.isRunning");
        assert!(has_answers_of_the_command_line(&mut browser), "a moved slider");
        let search = browser.evaluate("location.search");
        assert!(search.as_str().unwrap().contains("link.feeder.rate=100"), "{search}");

        browser.evaluate("document.getElementById('tab-packets').click()");
        browser.wait_for("gridhaul.packets.chart.layers.first.length > 20");
        let excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.evaluate(excess), 0, "{width} pixels");
    }
    // A scenario file with an error is refused, and the page stays.
    browser.evaluate(
        "(() => { const files = new DataTransfer(); files.items.add(new File(['title = 1'], \
         'wrong.toml')); const input = document.getElementById('scenario-file'); input.files = \
         files.files; input.dispatchEvent(new Event('change')); })()",
    );
    browser.wait_for("document.getElementById('failure').textContent.includes('wrong.toml')");
    // A valid one is kept for the tab, as the page does before it loads itself again.
    let kept = serde_json::json!({ "name": "small.toml", "text": SMALL }).to_string();
    let kept = serde_json::Value::from(kept);
    browser.evaluate(&format!("sessionStorage.setItem('gridhaul.scenario', {kept})"));
    browser.open(&format!("file://{path}"));
    browser.wait_for("gridhaul.redraws > 0 && gridhaul.current.result.command.includes('small')");
    let command = browser.evaluate("document.getElementById('command').textContent");
    assert!(command.as_str().unwrap().starts_with("gridhaul run small.toml"), "{command}");
    assert!(has_answers_of_the_command_line(&mut browser), "a scenario file");
}
