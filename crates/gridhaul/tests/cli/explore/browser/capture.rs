//! The capture view in headless Chromium, and the picture of the guide.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::Browser;
use crate::explain::{CAPTURES, captured, captured_with_outage};
use crate::explore::page::Page;
use crate::support::repository;

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_capture_has_its_sentence_its_packets_and_a_simulation_over_them() {
    let desk = captured_with_outage();
    let sentence = desk.run(&format!("explain {CAPTURES}")).out;
    let page = Page::open(&desk, CAPTURES);
    let mut browser = Browser::start();
    for (width, is_dark) in [(320, true), (1280, false)] {
        browser.set_window(width, is_dark);
        browser.open(page.url());
        browser.wait_for("gridhaul.chart.layers.first.length > 100");
        let shown = browser.evaluate("document.getElementById('connection-sentence').textContent");
        assert_eq!(sentence.lines().next(), shown.as_str());
        let rows = "document.querySelectorAll('#connection-details tbody tr').length";
        assert!(browser.evaluate(rows).as_u64() > Some(12));
        // The keyboard: a button of the list, the next timeout in the diagram.
        let pressed = "document.querySelector('#connections button').getAttribute('aria-pressed')";
        assert_eq!(browser.evaluate(pressed), "true");
        browser.evaluate(
            "document.getElementById('capture-canvas').dispatchEvent(new KeyboardEvent('keydown', \
             { key: 'n', bubbles: true }))",
        );
        browser.wait_for("document.querySelector('#capture-events tbody td:nth-child(4)')");

        browser.evaluate("document.getElementById('simulation').requestSubmit()");
        browser.wait_for("gridhaul.chart.layers.simulated.length > 100");
        let parting = browser.evaluate("gridhaul.chart.parting").as_f64().unwrap();
        assert!((4.0..7.0).contains(&parting), "{parting}");
        let reason = browser.evaluate("document.getElementById('comparison').textContent");
        assert!(reason.as_str().unwrap().contains("retransmission timeouts"), "{reason}");
        let excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.evaluate(excess), 0, "{width} pixels");
        let unnamed = "[...document.querySelectorAll('input, select, button')].filter(own => \
                       !own.getAttribute('aria-label') && !own.labels?.length && \
                       !own.textContent.trim()).length";
        assert_eq!(browser.evaluate(unnamed), 0);
        // The address leads back to the connection and its simulation.
        let search = browser.evaluate("location.search");
        let search = search.as_str().unwrap();
        assert!(search.contains("connection=1") && search.contains("simulated=1"), "{search}");
    }
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn saved_packets_have_the_command_that_prints_them() {
    let desk = captured("10 kB");
    let page = Page::open(&desk, CAPTURES);
    let mut browser = Browser::start();
    browser.open(page.url());
    browser.wait_for("gridhaul.chart.layers.first.length > 100");
    browser.keep_saved_files();
    browser.evaluate(
        "document.querySelectorAll('#capture-diagram button').forEach(own => \
         /SVG|CSV/.test(own.textContent) && own.click())",
    );
    browser.wait_for("saved.length == 2");
    let texts = browser.evaluate("Promise.all(saved.map(blob => blob.text()))");
    let svg = texts.as_array().unwrap().iter().find(|text| text.as_str().unwrap().starts_with('<'));
    let command = format!("gridhaul explain {CAPTURES} --connection 1 --format packets");
    assert!(svg.unwrap().as_str().unwrap().contains(&format!("<desc>{command}</desc>")));
    let csv = texts.as_array().unwrap().iter().find(|text| text.as_str().unwrap().starts_with('k'));
    let csv = csv.unwrap().as_str().unwrap();
    let printed = desk.run(command.strip_prefix("gridhaul ").unwrap()).out;
    let segments = |text: &str| text.lines().filter(|line| line.starts_with("segment,")).count();
    assert_eq!(segments(csv), segments(&printed));
}

/// The picture of the guide. It is written with `GRIDHAUL_UPDATE=1`.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_picture_of_the_guide_is_small() {
    let path = repository().join("docs/pictures/explore-capture.png");
    if std::env::var_os("GRIDHAUL_UPDATE").is_some() {
        let desk = captured_with_outage();
        let page = Page::open(&desk, CAPTURES);
        let mut browser = Browser::start();
        browser.set_window(900, false);
        browser.open(&format!("{}?simulated=1", page.url()));
        browser.wait_for("gridhaul.chart.layers.simulated.length > 100");
        browser.evaluate("new Promise(done => setTimeout(done, 300))");
        let area = browser.evaluate(
            "(() => { const top = document.getElementById('capture-goodput')\
             .getBoundingClientRect(); const bottom = document.querySelector('#capture-diagram \
             figure').getBoundingClientRect(); return { x: 0, y: top.top + scrollY - 8, width: \
             innerWidth, height: bottom.bottom - top.top + 16, scale: 1 }; })()",
        );
        let request = json!({ "format": "png", "captureBeyondViewport": true, "clip": area });
        let picture = browser.call("Page.captureScreenshot", &request);
        let bytes = BASE64_STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let size = std::fs::metadata(&path).unwrap().len();
    assert!((10_000..200_000).contains(&size), "{size} B");
}
