//! Checks that deny.toml allows the licences and sources of all dependencies.

use std::fs;

use anyhow::{Context, ensure};
use spdx::{Expression, Licensee, ParseMode};

use crate::process::{self, cargo, installed, root};

/// Runs cargo-deny if it is installed. Its installation takes minutes, so otherwise the two checks
/// that need no network are made here.
pub(crate) fn check() -> anyhow::Result<()> {
    if installed("cargo-deny") {
        return process::run(cargo().args(["deny", "check"]));
    }
    println!("cargo-deny is not installed: licences and sources are checked, advisories are not");
    let deny: toml::Table = fs::read_to_string(root().join("deny.toml"))?.parse()?;
    let list = |section: &str, key: &str| -> anyhow::Result<Vec<String>> {
        let found = deny.get(section).and_then(|section| section.get(key)?.as_array());
        let found = found.with_context(|| format!("deny.toml has no {section}.{key}"))?;
        Ok(found.iter().filter_map(|text| text.as_str().map(String::from)).collect())
    };
    let (allowed, registries) = (list("licenses", "allow")?, list("sources", "allow-registry")?);
    let allowed: Vec<Licensee> = allowed
        .iter()
        .map(|name| Licensee::parse(name).with_context(|| format!("deny.toml: licence {name:?}")))
        .collect::<Result<_, _>>()?;
    let metadata = process::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !permitted(licence, &allowed) {
            wrong.push(format!("{name}: licence {licence:?}"));
        }
        if let Some(source) = package["source"].as_str()
            && !registries.iter().any(|registry| source == format!("registry+{registry}"))
        {
            wrong.push(format!("{name}: source {source:?}"));
        }
    }
    ensure!(wrong.is_empty(), "not allowed by deny.toml:\n{}", wrong.join("\n"));
    println!("deny.toml allows all {} packages", packages.len());
    Ok(())
}

/// Whether the allowed licences satisfy an SPDX expression. Old packages write `/` for OR.
fn permitted(expression: &str, allowed: &[Licensee]) -> bool {
    let parsed = Expression::parse_mode(expression, ParseMode::LAX);
    parsed.is_ok_and(|expression| {
        expression.evaluate(|licence| allowed.iter().any(|allowed| allowed.satisfies(licence)))
    })
}

#[cfg(test)]
mod tests {
    use spdx::Licensee;

    use super::permitted;

    #[test]
    fn spdx_expressions_are_evaluated() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        let allowed = allowed.map(|name| Licensee::parse(name).expect("a licence of SPDX"));
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND BSL-1.0", true),
            ("(MIT OR GPL-3.0) AND BSL-1.0", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("", false),
            ("MIT MIT", false),
            ("(MIT", false),
        ] {
            assert_eq!(permitted(expression, &allowed), expected, "{expression}");
        }
    }
}
