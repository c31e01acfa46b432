//! The files of the page, which are part of the program.

use gridhaul_report::chart;
use gridhaul_report::html::PAGE_STYLE;

use crate::http::Response;

/// Media type of scripts.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Scripts (ECMAScript modules) by their names.
const SCRIPTS: &[(&str, &str)] = &[
    ("main.js", include_str!("../page/main.js")),
    ("address.js", include_str!("../page/address.js")),
    ("capture.js", include_str!("../page/capture.js")),
    ("chart.js", include_str!("../page/chart.js")),
    ("controls.js", include_str!("../page/controls.js")),
    ("export.js", include_str!("../page/export.js")),
    ("format.js", include_str!("../page/format.js")),
    ("packets.js", include_str!("../page/packets.js")),
    ("packets_chart.js", include_str!("../page/packets_chart.js")),
    ("results.js", include_str!("../page/results.js")),
    ("scenario.js", include_str!("../page/scenario.js")),
    ("sequence_view.js", include_str!("../page/sequence_view.js")),
    ("service.js", include_str!("../page/service.js")),
    ("table.js", include_str!("../page/table.js")),
];

/// The file with this path, if the page has it.
pub(crate) fn file(path: &str) -> Option<Response> {
    match path {
        "" | "index.html" => {
            let page = include_str!("../page/index.html");
            Some(Response::file("text/html; charset=utf-8", page))
        }
        // The colours are those of reports.
        "style.css" => {
            let style = [PAGE_STYLE, chart::STYLE, include_str!("../page/explore.css")].join("\n");
            Some(Response::file("text/css; charset=utf-8", &style))
        }
        // The style sheet of an exported chart.
        "chart.css" => Some(Response::file("text/css; charset=utf-8", chart::STYLE)),
        _ => {
            let (_, text) = SCRIPTS.iter().find(|(name, _)| *name == path)?;
            Some(Response::file(SCRIPT, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses in the page would be requests to other machines, and inline scripts are forbidden
    /// by the policy of the responses.
    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        let names = SCRIPTS.iter().map(|(name, _)| *name);
        for name in ["index.html", "style.css"].into_iter().chain(names) {
            let text = String::from_utf8(file(name).unwrap().body).unwrap();
            let namespace = "http://www.w3.org/2000/svg";
            let rest = text.replace(namespace, "");
            assert!(!rest.contains("http:") && !rest.contains("https:"), "{name}");
            assert!(!rest.contains("//cdn") && !rest.contains("@import"), "{name}");
            assert!(!rest.contains("<script>") && !rest.contains(" style=\""), "{name}");
        }
        assert!(file("../Cargo.toml").is_none());
    }

    #[test]
    fn every_imported_script_is_part_of_the_program() {
        for (name, text) in SCRIPTS {
            for import in text.split(" from \"./").skip(1) {
                let imported = import.split('"').next().unwrap_or_default();
                assert!(file(imported).is_some(), "{name} imports {imported}");
            }
        }
    }
}
