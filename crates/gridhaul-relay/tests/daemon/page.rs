//! The status page in a browser.

use std::fs;
use std::process::Command;

use gridhaul_relay::daemon::query;

use crate::relays::{Relays, Role};

/// Widths of a phone and of a desktop, in pixels.
const WIDTHS: [u32; 2] = [320, 1_280];

/// The status page of a relay.
fn page_of(relays: &Relays, role: Role) -> String {
    query(&relays.management(role).to_string(), "/").unwrap()
}

/// A document whose script measures the page in a frame: how much wider it is than the frame, its
/// rows, and the colours of text and error. The page itself has no script.
fn measuring(page: &str, width: u32) -> String {
    let source = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><html><head><meta name=\"color-scheme\" content=\"light \
         dark\"></head><body>\
         <iframe id=\"page\" srcdoc=\"{source}\" \
         style=\"border:0;width:{width}px;height:600px\"></iframe>\
         <p id=\"found\"></p>\
         <script>document.getElementById('page').onload = event => {{\
         const page = event.target.contentDocument;\
         const style = query => getComputedStyle(page.querySelector(query)).color;\
         document.getElementById('found').textContent = ['found', \
         page.documentElement.scrollWidth - page.documentElement.clientWidth,\
         page.querySelectorAll('th[scope=row]').length, style('body'), style('.error'), \
         'end'].join(';');\
         }}</script></body></html>"
    )
}

/// Excess width, rows, colour of the text and of the error, as the browser has displayed the page.
fn measured(relays: &Relays, page: &str, width: u32, is_dark: bool) -> Vec<String> {
    let path = relays.path("page.html");
    fs::write(&path, measuring(page, width)).unwrap();
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark));
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        &scheme,
    ]);
    command.args(["--virtual-time-budget=3000", "--dump-dom"]).arg(&path);
    let done = command.output().expect("chromium runs; install the Debian package chromium");
    let text = String::from_utf8_lossy(&done.stdout);
    let found = text.split("found;").nth(1).and_then(|rest| rest.split(";end").next());
    let found =
        found.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&done.stderr)));
    found.split(';').map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_page_fits_a_phone_and_a_desktop_in_light_and_dark() {
    // Without a head, the page has an error, whose text is long.
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    relays.wait_until("the collector has tried to connect", |relays| {
        relays.ask(Role::Collector, "/status").unwrap()["upstream_error"].is_string()
    });
    let page = page_of(&relays, Role::Collector);
    assert!(!page.contains("<script"), "no script is needed");
    let rows = page.matches("<th scope=\"row\"").count();
    assert!(rows > 20, "{page}");
    for width in WIDTHS {
        let [light, dark] = [false, true].map(|is_dark| measured(&relays, &page, width, is_dark));
        for found in [&light, &dark] {
            assert_eq!(found[0], "0", "no horizontal scrolling at {width} pixels");
            assert_eq!(found[1], rows.to_string(), "all rows are parsed");
        }
        assert_eq!((&*light[2], &*dark[2]), ("rgb(0, 0, 0)", "rgb(255, 255, 255)"));
        assert_ne!(light[3], dark[3], "the colour of errors suits the background");
    }
}
