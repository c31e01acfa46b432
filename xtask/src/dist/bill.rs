//! The bill of materials: a list of all crates in the programs, in the format CycloneDX 1.5.

use serde_json::json;

use super::Release;
use super::dependencies::Dependency;

/// The bill as JSON. It has no serial number and no time, so that the same sources give the same
/// bytes.
pub(super) fn of(release: &Release, dependencies: &[Dependency]) -> anyhow::Result<String> {
    let components: Vec<_> = dependencies
        .iter()
        .map(|dependency| {
            let Dependency { name, version, licence, checksum, .. } = dependency;
            let hashes = checksum.iter().map(|sum| json!({ "alg": "SHA-256", "content": sum }));
            let reference = format!("pkg:cargo/{name}@{version}");
            json!({
                "type": "library",
                "bom-ref": reference,
                "name": name,
                "version": version,
                "purl": reference,
                "licenses": [{ "expression": licence }],
                "hashes": hashes.collect::<Vec<_>>(),
            })
        })
        .collect();
    let component = json!({
        "type": "application",
        "name": "gridhaul",
        "version": release.version,
        "licenses": [{ "expression": "Apache-2.0" }],
    });
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component },
        "components": components,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill)?))
}
