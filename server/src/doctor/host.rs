//! The host: room on the disk, who may read what is secret, and the address that people are told.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Check, Patient};

/// Less room than this is worth a warning, and much less a failure.
const LITTLE: u64 = 5 << 30;
const TOO_LITTLE: u64 = 512 << 20;

pub(super) fn checks(patient: &Patient) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(dir) = &patient.data_dir {
        checks.push(room(dir, patient.embedded));
        checks.push(secrets(dir));
    }
    checks.push(public_url(patient.public_url.as_deref()));
    checks
}

fn room(dir: &Path, embedded: bool) -> Check {
    let of = if embedded { "the data directory, with the database" } else { "the data directory" };
    let facts = match rustix::fs::statvfs(dir) {
        Ok(facts) => facts,
        Err(error) => {
            let advice = "Name the server's own directory with --data-dir.";
            return Check::failed("disk", format!("{}: {error}", dir.display()), advice);
        }
    };
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let found = format!("{} free for {of}, {}", size(free), dir.display());
    let advice = "Make room, or let `plimsoll-server prune` thin old reports out.";
    match free {
        0..TOO_LITTLE => Check::failed("disk", found, advice),
        TOO_LITTLE..LITTLE => Check::warning("disk", found, advice),
        _ => Check::ok("disk", found),
    }
}

/// The token and the password of Postgres are for their owner only.
fn secrets(dir: &Path) -> Check {
    let open: Vec<String> = ["token", "postgres/password"]
        .iter()
        .map(|name| dir.join(name))
        .filter(|path| fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0))
        .map(|path| path.display().to_string())
        .collect();
    if !open.is_empty() {
        let advice =
            "chmod 600 them; who read the token may have used it: `plimsoll-server token revoke` makes it void.";
        return Check::failed("secrets", format!("others may read {}", open.join(", ")), advice);
    }
    if fs::metadata(dir).is_ok_and(|facts| facts.permissions().mode() & 0o022 != 0) {
        return Check::failed("secrets", format!("others may write into {}", dir.display()), "chmod go-w it.");
    }
    Check::ok("secrets", "for their owner only")
}

fn public_url(url: Option<&str>) -> Check {
    let Some(url) = url else {
        return Check::ok("public URL", "not set: links lead to the address that a client used");
    };
    let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(parsed) = parsed else {
        return Check::failed("public URL", format!("{url:?} is none"), "Write it as https://plimsoll.example.com.");
    };
    let local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if parsed.scheme() == "http" && !local {
        let advice = "Put a proxy that ends TLS before the server: tokens and cookies travel in clear otherwise.";
        return Check::warning("public URL", format!("{url} is without TLS"), advice);
    }
    Check::ok("public URL", url)
}

pub(super) fn size(bytes: u64) -> String {
    let gibibytes = bytes as f64 / f64::from(1 << 30);
    if gibibytes < 1.0 { format!("{:.0} MiB", gibibytes * 1_024.0) } else { format!("{gibibytes:.1} GiB") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn addresses_that_cannot_be_meant_are_named() {
        for (url, level) in [
            (None, Level::Ok),
            (Some("https://plimsoll.example.com"), Level::Ok),
            (Some("http://127.0.0.1:7420"), Level::Ok),
            (Some("http://plimsoll.example.com"), Level::Warning),
            (Some("plimsoll.example.com"), Level::Failed),
            (Some("ftp://plimsoll.example.com"), Level::Failed),
        ] {
            assert_eq!(public_url(url).level, level, "{url:?}");
        }
    }

    #[test]
    fn a_token_that_others_may_read_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "secret").unwrap();
        for (mode, level) in [(0o600, Level::Ok), (0o640, Level::Failed), (0o604, Level::Failed)] {
            fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(secrets(folder.path()).level, level, "{mode:o}");
        }
    }
}
