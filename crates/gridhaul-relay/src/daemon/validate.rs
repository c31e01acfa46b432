//! Checks of a configuration on the machine where it is used. The commands `check` and `run`, and a
//! reload, share them: whatever would stop a relay is found, except for addresses that other
//! programs use.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use gridhaul_linux::{configure_leg, require_congestion_control, require_user};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{CollectorConfig, Deliver, SplitConfig};
use rustix::fs::{Access, access};
use socket2::{Domain, Protocol, Socket, Type};

use crate::collector::io as collector;
use crate::head::io::delivery::json_lines::check_lines;
use crate::head::io::delivery::login::check_login;
use crate::packet::io as bridge;
use crate::router::io as router;
use crate::runtime::local_address::is_local;
use crate::runtime::{RunError, tls};
use crate::split::io as split;

/// Checks a configuration whose relative paths begin at `folder`. Returns faults with which a relay
/// starts, although peers will refuse it, such as an expired certificate.
///
/// # Errors
/// The relay would not start, or would connect to itself.
pub fn validate(config: &RelayConfig, folder: &Path) -> Result<Vec<String>, RunError> {
    if let Some(found) = config.loops(&is_local).first() {
        let (key, message, remedy) = (&found.key, &found.message, &found.remedy);
        return Err(RunError::Invalid(format!("{key}: {message}\n  help: {remedy}")));
    }
    if let Some(user) = &config.user {
        let found = require_user(user, config.group.as_deref());
        found.map_err(|source| RunError::User { user: user.clone(), source })?;
    }
    if let Some(name) =
        config.collector.as_ref().and_then(|collector| collector.congestion_control.as_ref())
    {
        let found = require_congestion_control(name);
        found.map_err(|error| at("collector.congestion_control", &error))?;
    }
    if let Some(split) = &config.split {
        check_legs(split)?;
    }
    let mut faults = Vec::new();
    if let Some(router) = &config.router {
        faults.extend(router::validate(router)?);
    }
    if let Some(collector) = &config.collector {
        check_durable(collector)?;
    }
    if let Some(bridge) = &config.bridge {
        bridge::check(bridge)?;
    }
    if let Some(log) = &config.log {
        check_folder("log.folder", &folder.join(&log.folder))?;
    }
    match config.head.as_ref().map(|head| &head.deliver) {
        Some(Deliver::File(file)) => check_destination(config, folder, Path::new(file))?,
        Some(Deliver::Mqtt(mqtt)) => check_login(&config.name, mqtt, folder)?,
        Some(Deliver::Tcp(_)) | None => {}
    }
    faults.extend(tls::check(config, folder)?);
    let source = config.collector.as_ref().and_then(|collector| collector.source.as_ref());
    if let Some(source) = source.filter(|source| source.parse().is_ok_and(|ip| !is_local(ip))) {
        faults.push(format!(
            "collector.source: this machine does not have the address {source}\n  help: write one \
             of its addresses, or remove the key"
        ));
    }
    Ok(faults)
}

/// Notes about what is likely to be a mistake on this machine, although it may be intended.
#[must_use]
pub fn machine_notes(config: &RelayConfig) -> Vec<String> {
    config.router.as_ref().map(router::notes).unwrap_or_default()
}

/// Packets for listeners whose data is acknowledged when it is durable must reach the TUN device.
fn check_durable(keys: &CollectorConfig) -> Result<(), RunError> {
    let durable = keys.listener.iter().filter(|(_, listener)| listener.is_durable());
    for (name, listener) in durable {
        let address: Option<SocketAddr> = listener.address.parse().ok();
        if let Some(ip) = address.map(|address| address.ip()).filter(|ip| is_local(*ip)) {
            let device = keys.tun.as_deref().unwrap_or("DEVICE");
            let length = if ip.is_ipv4() { 32 } else { 128 };
            return Err(RunError::Invalid(format!(
                "collector.listener.{name}.address: this machine has the address {ip}, so that \
                 the kernel would answer the meters\n  \
                 help: remove it from the machine, and route it: ip route add {ip}/{length} dev \
                 {device}"
            )));
        }
    }
    keys.tun.as_ref().map_or(Ok(()), |name| collector::check_device(name))
}

/// The kernel must accept the options of both legs.
fn check_legs(split: &SplitConfig) -> Result<(), RunError> {
    for (key, leg) in [("split.client", &split.client), ("split.server", &split.server)] {
        let options = split::leg_options(leg).map_err(|error| at(key, &error))?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
        let socket = socket.map_err(gridhaul_linux::Error::call("opening a socket"))?;
        configure_leg(&socket, &options).map_err(|error| at(key, &error))?;
    }
    Ok(())
}

fn at(key: &str, error: &dyn std::fmt::Display) -> RunError {
    RunError::Invalid(format!("{key}: {error}"))
}

/// A folder that exists and can be written, or that can be created.
fn check_folder(key: &str, path: &Path) -> Result<(), RunError> {
    let here = Path::new(".");
    let folders =
        path.ancestors().map(|folder| if folder.as_os_str().is_empty() { here } else { folder });
    let present = folders.into_iter().find(|folder| folder.exists()).unwrap_or(here);
    let checked = fs::metadata(present).and_then(|found| {
        if !found.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(access(present, Access::WRITE_OK | Access::EXEC_OK)?)
    });
    checked.map_err(|error| invalid(key, present, &error))
}

/// A file of lines, outside of the folder of the log: a segment, or a file that the log does not
/// expect, would damage it.
fn check_destination(config: &RelayConfig, folder: &Path, file: &Path) -> Result<(), RunError> {
    const KEY: &str = "head.deliver.file";
    let path = folder.join(file);
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let own = config.log.as_ref().and_then(|log| resolved(&folder.join(&log.folder)).ok());
    if let (Some(own), Ok(found)) = (own, resolved(&path))
        && found.starts_with(own)
    {
        return Err(RunError::Invalid(format!(
            "{KEY}: {}: this is in the folder of the record log\n  \
             help: choose a file outside of `log.folder`",
            path.display()
        )));
    }
    check_file(KEY, &path)
}

/// A file that can be written, or that can be created in its folder.
fn check_file(key: &str, path: &Path) -> Result<(), RunError> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let checked = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) => access(path, Access::READ_OK | Access::WRITE_OK)
            .map_err(io::Error::from)
            .and_then(|()| check_lines(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
        }
        Err(error) => Err(error),
    };
    checked.map_err(|error| invalid(key, path, &error))
}

fn invalid(key: &str, path: &Path, error: &io::Error) -> RunError {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => {
            format!(
                "permit the user of the relay to write to `{key}`, and use the command as this user"
            )
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("mount the file system for writing, or change `{key}`")
        }
        ErrorKind::NotFound => format!("create the folder, or change `{key}`"),
        _ => format!("change `{key}`"),
    };
    RunError::Invalid(format!("{key}: {}: {error}\n  help: {remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_of_acknowledgements_beyond_that_of_linux_names_its_range() {
        let text = "name = \"s\"\n[split]\nclient.delayed_ack = \"10 s\"\n\
                    [split.listener.a]\naddress = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n";
        let split = RelayConfig::from_toml(text, "s.toml").unwrap().split.unwrap();
        let error = check_legs(&split).unwrap_err().to_string();
        assert!(error.starts_with("split.client: `delayed_ack` is 10 s"), "{error}");
        assert!(error.contains("at most 200 ms"), "{error}");
    }

    #[test]
    fn a_missing_folder_can_be_created_and_a_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("file"), "").unwrap();
        check_folder("log.folder", path).unwrap();
        check_folder("log.folder", &path.join("a/b")).unwrap();
        check_folder("log.folder", Path::new("a/b")).unwrap();
        let error = check_folder("log.folder", &path.join("file/log")).unwrap_err().to_string();
        assert!(error.contains("not a directory") || error.contains("Not a directory"), "{error}");
        check_file("head.deliver.file", &path.join("file")).unwrap();
        check_file("head.deliver.file", &path.join("new")).unwrap();
        check_file("head.deliver.file", Path::new("new")).unwrap();
        let error = check_file("head.deliver.file", &path.join("absent/new")).unwrap_err();
        assert!(error.to_string().contains("help: create the folder"), "{error}");
        assert!(check_file("head.deliver.file", path).is_err());
    }
}
