//! The page in one file. A page that was opened from a folder may load no scripts and no module
//! (an origin `file:` has no access to other files): the file contains both.
//!
//! The page, its style and its scripts are those of `gridhaul explore`, except for `service.js`,
//! whose requests the module answers in the place of the server.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gridhaul_web::PageModule;
use serde_json::json;

/// Scripts of this page in addition to those of the server, or in their place.
const OWN_SCRIPTS: [(&str, &str); 2] = [
    ("service.js", include_str!("../page/service.js")),
    ("start.js", include_str!("../page/start.js")),
];

/// The script of the workers, which run the module.
const WORKER: &str = include_str!("../page/worker.mjs");

/// The page loads nothing: all parts are in the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' data: \
                      blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; \
                      base-uri 'none'; form-action 'none'";

/// The page with a module, which is compressed by gzip (RFC 1952).
///
/// # Errors
/// The page of the explorer lacks a part that is replaced here.
pub(crate) fn make(module: &[u8]) -> anyhow::Result<String> {
    let mut explorer = PageModule::new();
    let mut file = |path: &str| {
        let response = explorer.answer(format!("GET /{path} HTTP/1.1\r\n\r\n").as_bytes());
        ensure!(response.status == "200 OK", "the explorer has no {path}");
        String::from_utf8(response.body).with_context(|| path.to_owned())
    };
    let scripts = scripts(&mut file)?;
    let (style, page) = (file("style.css")?, file("")?);
    let imports: BTreeMap<_, _> = scripts.iter().map(|(name, text)| (name, data(text))).collect();
    let imports = json!({ "imports": imports });
    let module = BASE64_STANDARD.encode(module);
    // Chromium refuses workers that are ECMAScript modules in a page of a folder.
    let worker = WORKER.replace("export function", "function");
    let parts = [
        (
            "<meta charset=\"utf-8\">",
            format!(
                "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
                 content=\"{POLICY}\">"
            ),
        ),
        ("<link rel=\"stylesheet\" href=\"style.css\">", format!("<style>\n{style}\n</style>")),
        (
            "<script type=\"module\" src=\"main.js\"></script>",
            format!(
                "<script type=\"importmap\">{imports}</script>\n\
                 <script type=\"text/plain\" id=\"worker\">\n{worker}</script>\n\
                 <script type=\"text/plain\" id=\"module\">{module}</script>\n\
                 <script type=\"module\">import \"start.js\";</script>"
            ),
        ),
    ];
    parts.iter().try_fold(page, |page, (part, replacement)| {
        ensure!(page.matches(part).count() == 1, "the page of the explorer lacks {part}");
        Ok(page.replace(part, replacement))
    })
}

/// `start.js` and all scripts that it imports, by their names. Modules of data URLs have no folder:
/// the names of their imports are those of the import map.
fn scripts(
    file: &mut impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut scripts = BTreeMap::new();
    let mut names = vec!["start.js".to_owned()];
    while let Some(name) = names.pop() {
        if scripts.contains_key(&name) {
            continue;
        }
        let own = OWN_SCRIPTS.iter().find(|(own, _)| *own == name);
        let text = own.map_or_else(|| file(&name), |(_, text)| Ok((*text).to_owned()))?;
        let imports = text.split("\"./").skip(1).filter_map(|rest| rest.split_once('"'));
        names.extend(imports.map(|(name, _)| name.to_owned()));
        scripts.insert(name, text.replace("\"./", "\""));
    }
    Ok(scripts)
}

fn data(script: &str) -> String {
    format!("data:text/javascript;base64,{}", BASE64_STANDARD.encode(script))
}
