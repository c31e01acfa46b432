//! Pages that are generated from a data file in `docs/data`, from the schemas and from the code.

pub(crate) mod compat;
pub(crate) mod defaults;
pub(crate) mod evidence;
pub(crate) mod failures;
pub(crate) mod python;

use serde::de::DeserializeOwned;

use crate::repository::Repository;

/// Reads a data file of `docs/data`.
pub(crate) fn data<T: DeserializeOwned>(repository: &Repository, name: &str) -> T {
    let path = format!("docs/data/{name}.toml");
    toml::from_str(&repository.read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compares a page with its generated text, or writes the page if GRIDHAUL_UPDATE is set.
///
/// # Panics
///
/// The data of the page has errors, or the page is stale.
pub(crate) fn compare(repository: &Repository, path: &str, text: &str, errors: &[String]) {
    assert!(errors.is_empty(), "{path}:\n{}\n", errors.join("\n"));
    if std::env::var_os("GRIDHAUL_UPDATE").is_some() {
        repository.write(path, text);
        return;
    }
    let is_current = repository.has(path) && repository.read(path) == text;
    assert!(is_current, "{path} is stale; run cargo xtask docs");
}

/// A path relative to `docs/` in place of one relative to the root.
pub(crate) fn from_docs(path: &str) -> String {
    path.strip_prefix("docs/").map_or_else(|| format!("../{path}"), str::to_owned)
}
