//! Checks the structure of the repository: dependencies of crates, the order of modules in
//! ARCHITECTURE.md, circles of files, the length of lines, files or public items that nothing uses,
//! and words that leave a reader in doubt.

mod browser;
mod circles;
mod crates;
mod graph;
mod imports;
mod lines;
mod module_files;
mod module_order;
mod parameters;
mod repository;
mod source;
mod unused;
mod words;
