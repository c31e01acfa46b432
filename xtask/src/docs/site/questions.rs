//! Questions of newcomers and of engineers of a utility to the search of the site: the page with
//! the answer is among the first hits.

use std::path::Path;

use anyhow::ensure;

use crate::process::{installed, output, program, root};

/// A question.
struct Question {
    text: &'static str,
    /// Words that a reader types.
    search: &'static str,
    /// Pages, or sections of pages, that answer the question.
    pages: &'static [&'static str],
}

/// A reader looks at so many hits within a minute.
const HITS: usize = 3;

const QUESTIONS: &[Question] = &[
    Question {
        text: "How do I give a link a burst loss?",
        search: "burst loss",
        pages: &["docs/guides/tasks.html#burst-loss-of-a-link", "docs/guides/scenarios.html"],
    },
    Question {
        text: "How do I install gridhaul?",
        search: "installation",
        pages: &["index.html", "docs/tutorial.html"],
    },
    Question {
        text: "Why is the transfer in my capture slow?",
        search: "explain capture",
        pages: &["docs/guides/explain-a-capture.html"],
    },
    Question {
        text: "How do I simulate many values of a rate?",
        search: "sweep",
        pages: &["docs/guides/scenarios.html", "docs/reference/scenario.html"],
    },
    Question {
        text: "How do I put a split proxy on a gateway?",
        search: "split proxy",
        pages: &["docs/guides/split-proxy.html"],
    },
    Question {
        text: "How large is the queue of a link without the key?",
        search: "default queue",
        pages: &["docs/guides/tasks.html#default-queue-of-a-link"],
    },
    Question {
        text: "How do I run a scenario from Python?",
        search: "python run scenario",
        pages: &["docs/guides/python.html", "docs/python-api.html"],
    },
    Question {
        text: "Which results were compared with ns-2?",
        search: "compared ns-2",
        pages: &["docs/guides/tasks.html#results-compared-with-ns-2-and-linux"],
    },
    Question {
        text: "How many meters can an aggregator serve?",
        search: "size aggregators",
        pages: &["docs/guides/planning.html"],
    },
    Question {
        text: "How do I run it on the real kernel?",
        search: "real kernel",
        pages: &["docs/guides/real-kernels.html"],
    },
    Question {
        text: "How do I model a power line with noise?",
        search: "power line noise",
        pages: &["docs/guides/tasks.html#power-line-with-noise-and-distance"],
    },
    Question {
        text: "How do I get my list of meters into a scenario?",
        search: "import meters",
        pages: &["docs/guides/tasks.html#import-a-list-of-meters-or-a-topology"],
    },
    Question {
        text: "Which latency does GOOSE have on my network?",
        search: "GOOSE latency",
        pages: &["docs/guides/tasks.html#latency-of-goose-and-sampled-values-iec-61850"],
    },
    Question {
        text: "Can it measure IEC 60870-5-104?",
        search: "iec 104",
        pages: &["docs/guides/tasks.html#latency-of-mqtt-iec-104-dnp3-or-modbus"],
    },
    Question {
        text: "How do I give protection traffic a priority?",
        search: "priority",
        pages: &["docs/guides/tasks.html#priority-and-quality-of-service-qos"],
    },
    Question {
        text: "What happens when a link fails?",
        search: "link failure",
        pages: &["docs/guides/tasks.html#link-outage-or-link-failure"],
    },
    Question {
        text: "Does the relay lose readings when it crashes?",
        search: "data loss relay",
        pages: &["docs/guides/tasks.html#relay-that-stores-meter-data-without-loss"],
    },
    Question {
        text: "How do I simulate a denial of service?",
        search: "denial of service",
        pages: &["docs/guides/tasks.html#denial-of-service-and-other-attacks"],
    },
    Question {
        text: "How large is the confidence interval?",
        search: "confidence interval",
        pages: &["docs/guides/metrics.html#replications-and-confidence-intervals"],
    },
    Question {
        text: "Which certificates does the relay need?",
        search: "relay TLS certificates",
        pages: &["docs/guides/tasks.html#tls-certificates-of-the-relay"],
    },
];

/// Searches for all questions in the finished site.
///
/// # Errors
/// A page is not among the first hits.
pub(super) fn check(site: &Path) -> anyhow::Result<()> {
    if !installed("node") {
        println!("the search was not tried: node is missing");
        return Ok(());
    }
    let mut search = program("node");
    search.arg(root().join("xtask/src/docs/site/search.mjs")).arg(site);
    let found = output(search.args(QUESTIONS.iter().map(|question| question.search)))?;
    let mut wrong = Vec::new();
    for (question, line) in QUESTIONS.iter().zip(found.lines()) {
        let hits: Vec<_> = line.split_whitespace().take(HITS).collect();
        if !question.is_answered_by(&hits) {
            let Question { text, search, .. } = question;
            wrong.push(format!("{text} The first hits for \"{search}\": {line}"));
        }
    }
    ensure!(wrong.is_empty(), "the search does not find:\n{}", wrong.join("\n"));
    println!("{} questions: the page is among the first {HITS} hits", QUESTIONS.len());
    Ok(())
}

impl Question {
    /// Whether one of the hits is a section with the answer, or of a page with the answer.
    fn is_answered_by(&self, hits: &[&str]) -> bool {
        hits.iter().any(|hit| self.pages.contains(hit) || self.pages.contains(&page_of(hit)))
    }
}

/// The page of an address, without the section.
fn page_of(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_with_an_answer_is_a_page_of_the_repository() {
        for address in QUESTIONS.iter().flat_map(|question| question.pages) {
            let source = match page_of(address) {
                "index.html" => "README.md".to_owned(),
                page => page.replace(".html", ".md"),
            };
            assert!(root().join(&source).is_file(), "{address}");
        }
    }

    #[test]
    fn a_section_of_the_page_is_an_answer() {
        let question = &QUESTIONS[2];
        assert!(question.is_answered_by(&["a.html", "docs/guides/explain-a-capture.html#limits"]));
        assert!(!question.is_answered_by(&["docs/glossary.html#capture"]));
        let section = &QUESTIONS[0];
        assert!(section.is_answered_by(&["docs/guides/tasks.html#burst-loss-of-a-link"]));
        assert!(!section.is_answered_by(&["docs/guides/tasks.html#deadline-of-a-message"]));
    }
}
