//! A change to the system.

use std::fmt;

/// A change to the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A setting below `/proc/sys/net`.
    Sysctl { name: String, value: String },
    /// A command of iproute2.
    Command { program: Iproute2, arguments: Vec<String> },
    /// A transaction of nft(8).
    Ruleset(String),
}

/// A program of iproute2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iproute2 {
    Ip,
    Tc,
}

impl Iproute2 {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Ip, Self::Tc].into_iter().find(|program| program.name() == name)
    }
}

impl Step {
    /// A command whose arguments have no spaces, which separate them.
    pub(super) fn command(program: Iproute2, arguments: &str) -> Self {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Self::Command { program, arguments }
    }

    /// A command as a line of a shell, as [`Self::fmt`] writes it; `None` if it is not one of
    /// iproute2.
    pub(super) fn from_command_line(line: &str) -> Option<Self> {
        let (program, arguments) = line.split_once(' ')?;
        Some(Self::command(Iproute2::from_name(program)?, arguments))
    }
}

impl fmt::Display for Step {
    /// As a line of a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // With slashes, a dot belongs to the name of a device.
            Self::Sysctl { name, value } => write!(f, "sysctl -w net/{name}={value}"),
            Self::Command { program, arguments } => {
                write!(f, "{} {}", program.name(), arguments.join(" "))
            }
            Self::Ruleset(text) => write!(f, "nft -f - <<'END'\n{text}END"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_back_and_one_of_another_program_is_none() {
        for line in ["ip -4 rule add pref 7100 lookup 7100", "tc qdisc del dev gprs0.7 root"] {
            assert_eq!(Step::from_command_line(line).unwrap().to_string(), line);
        }
        for line in ["nft flush ruleset", "ipx route", "ip", ""] {
            assert_eq!(Step::from_command_line(line), None, "{line}");
        }
    }
}
