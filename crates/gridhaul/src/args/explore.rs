//! Arguments of `explore`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `explore`.
///
/// The page is served on the loopback interface of this machine, and its address contains a token:
/// other machines, and pages of other sites, cannot use it. The page loads nothing from the
/// Internet. The command ends with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExploreArgs {
    /// Scenario file (TOML), results folder, answer.json or captures (pcap or pcapng) [default: a
    /// built-in scenario with one bulk flow]
    ///
    /// Of a scenario with a sweep, the page shows the first point; the sliders take the place of
    /// the sweep. For a results folder, the page shows its points, and the scenario as well.
    /// Several files are one capture: both directions of a link, or several points.
    #[arg(num_args = 0.., value_name = "SCENARIO | RESULTS | CAPTURE")]
    pub(crate) paths: Vec<PathBuf>,
    /// Port of the page; 0: any free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Print the address only, without opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

const EXAMPLES: &str = "\
Examples:
  gridhaul explore                              a bulk flow over a slow link
  gridhaul explore scenarios/lossy-line.toml    your scenario
  gridhaul explore results/lossy-line-sweep     the points of a sweep
  gridhaul explore upload.pcapng                the connections of a capture
  gridhaul explore --no-browser --port 8080     print the address, for a tunnel:
                                                ssh -L 8080:127.0.0.1:8080 HOST";
