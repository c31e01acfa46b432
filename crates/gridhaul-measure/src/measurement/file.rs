//! Measurements in TOML files, with the reader and the errors of scenarios.

use std::path::{Path, PathBuf};

use gridhaul_scenario::scenario::{Scenario, ScenarioError, read_file, read_text};

use super::{EmulatedNetwork, GivenBroker, Measurement, NetworkSource, Place};

impl Measurement {
    /// Reads a measurement from the text of a TOML file; `file` is its name in errors.
    ///
    /// # Errors
    /// A text that is not TOML, unknown keys, wrong types or units, and inconsistent values, all
    /// with line and remedy.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        read_text(text, file, Self::diagnostics)
    }

    /// Reads a file of at most 4 MB. Relative paths of a scenario, a certificate and a token begin
    /// at the folder of the file.
    ///
    /// # Errors
    /// A file that cannot be read, and the errors of [`Self::from_toml`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let mut measurement = read_file(path, Self::diagnostics)?;
        if !Scenario::is_standard_input(path) {
            measurement.set_folder(path.parent().unwrap_or(Path::new("")));
        }
        Ok(measurement)
    }

    /// The measurement as TOML, including every default value.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[expect(clippy::expect_used, reason = "every field is text, number, list or table")]
        toml::to_string(self).expect("a measurement can be written as TOML")
    }

    /// Makes relative paths begin at a folder.
    fn set_folder(&mut self, folder: &Path) {
        let join = |path: &mut PathBuf| *path = folder.join(&*path);
        match &mut self.place {
            Place::Emulated(EmulatedNetwork {
                network: NetworkSource::Scenario(network), ..
            }) => join(&mut network.file),
            Place::Agent(agent) => agent.token_file.iter_mut().for_each(join),
            Place::Emulated(_) | Place::ThisMachine => {}
        }
        if let Some(GivenBroker { ca: Some(file), .. }) = self.protocol.given_broker_mut() {
            join(file);
        }
    }
}
