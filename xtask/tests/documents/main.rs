//! Tests of the documents: links, paths, commands, keys, metrics, test names and cited sections of
//! RFCs exist, and the recipes of CONTRIBUTING.md match the code.

mod citations;
mod command_line;
mod commands;
mod generated;
mod keys;
mod links;
mod marks;
mod mentions;
mod names;
mod page;
mod paths;
mod recipes;
mod repository;

use generated::compat::Compat;
use generated::defaults::Defaults;
use generated::failures::Failures;
use generated::python::PythonApi;
use page::Finding;
use repository::Repository;

#[test]
fn relative_links_and_anchors_exist() {
    let repository = Repository::open();
    report(repository.pages().iter().flat_map(|page| links::check(&repository, page)));
}

#[test]
fn files_and_folders_named_in_documents_exist() {
    let repository = Repository::open();
    report(repository.pages().iter().flat_map(|page| paths::check(&repository, page)));
}

#[test]
fn paths_from_the_root_exist_wherever_they_are_named() {
    let repository = Repository::open();
    let texts = repository.texts();
    report(texts.iter().flat_map(|page| mentions::check(&repository, page)));
}

#[test]
fn commands_and_options_named_in_documents_exist() {
    let repository = Repository::open();
    let programs = commands::Programs::read(&repository);
    report(repository.pages().iter().flat_map(|page| programs.check(page)));
}

#[test]
fn libraries_name_no_option_of_the_command_line() {
    let repository = Repository::open();
    report(commands::Programs::read(&repository).options_in_libraries(&repository));
}

#[test]
fn scenario_keys_and_metrics_named_in_documents_exist() {
    let repository = Repository::open();
    let vocabulary = keys::Vocabulary::read(&repository);
    report(repository.pages().iter().flat_map(|page| vocabulary.check(page)));
}

#[test]
fn tests_named_in_documents_exist() {
    let repository = Repository::open();
    let vocabulary = keys::Vocabulary::read(&repository);
    let functions = names::functions(&repository);
    let known = |name: &str| functions.contains(name) || vocabulary.has_word(name);
    report(repository.pages().iter().flat_map(|page| names::check(page, &known)));
}

#[test]
fn identifiers_named_in_pages_about_the_code_exist() {
    let repository = Repository::open();
    let known = names::identifiers(&repository);
    let pages = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|path| repository.page(path));
    report(pages.iter().flat_map(|page| names::check_identifiers(page, &known)));
}

#[test]
fn cited_sections_of_rfcs_exist() {
    let repository = Repository::open();
    let table = citations::Table::read(include_str!("rfc-sections.txt"));
    let texts = repository.texts();
    let count: usize = texts.iter().map(citations::Table::count).sum();
    assert!(count > 300, "only {count} citations found: has their form changed?");
    report(texts.iter().flat_map(|page| table.check(page)));
}

#[test]
fn recipes_of_the_contributing_page_match_the_code() {
    let repository = Repository::open();
    let page = repository.page("CONTRIBUTING.md");
    let found = recipes::read(&page);
    assert!(
        found.len() >= 20,
        "only {} rows of recipes found: has the header of their tables changed?",
        found.len()
    );
    let wrong = found.iter().flat_map(|recipe| recipes::check(&repository, &page, recipe));
    report(wrong.chain(recipes::unlisted(&repository, &page)));
}

#[test]
fn files_and_tests_named_in_comments_exist() {
    let repository = Repository::open();
    let identifiers = names::identifiers(&repository);
    let known = |name: &str| identifiers.contains(name);
    let comments = repository.comments();
    report(comments.iter().flat_map(|page| {
        paths::check(&repository, page).into_iter().chain(names::check(page, &known))
    }));
}

#[test]
fn every_coverage_mark_has_one_line_and_one_test() {
    let repository = Repository::open();
    let sources: Vec<_> =
        repository.texts().into_iter().filter(|page| page.path.starts_with("crates/")).collect();
    for (folder, minimum) in marks::MARKED {
        let count = marks::count(&sources, folder);
        assert!(count >= minimum, "{count} marks in {folder}: has their form changed?");
    }
    report(marks::check(&sources));
}

#[test]
fn the_generated_page_of_rfcs_states_what_tests_and_code_show() {
    let repository = Repository::open();
    let table = citations::Table::read(include_str!("rfc-sections.txt"));
    let Compat { page, errors } = Compat::generate(&repository, &table);
    generated::compare(&repository, "docs/compat.md", &page, &errors);
}

#[test]
fn every_default_has_a_reason_and_a_source_on_the_generated_page() {
    let repository = Repository::open();
    let Defaults { page, errors } = Defaults::generate(&repository);
    generated::compare(&repository, "docs/defaults.md", &page, &errors);
}

#[test]
fn failures_of_others_have_a_test_or_a_reason_on_the_generated_page() {
    let repository = Repository::open();
    let Failures { page, errors } = Failures::generate(&repository);
    generated::compare(&repository, "docs/failures-of-others.md", &page, &errors);
}

#[test]
fn every_public_name_of_python_is_on_the_generated_page() {
    let repository = Repository::open();
    let PythonApi { page, errors } = PythonApi::generate(&repository);
    generated::compare(&repository, "docs/python-api.md", &page, &errors);
}

/// Fails with all findings, one a line.
fn report(findings: impl IntoIterator<Item = Finding>) {
    let lines: Vec<String> = findings.into_iter().map(|finding| finding.to_string()).collect();
    assert!(
        lines.is_empty(),
        "{} false statements in documents:\n{}\n",
        lines.len(),
        lines.join("\n")
    );
}
