//! Reports on disk: whole or not at all, and before anything is sent.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_domain::report::{MAX_BYTES, Report};

use crate::exit::{Exit, Failure};

/// Where a run's report goes unless a flag says otherwise: `plimsoll/2025-11-25T14-06-08Z-8d1e07b/report.json`.
pub fn default_path(started_at: Timestamp, revision: Option<&str>) -> PathBuf {
    let time = started_at.strftime("%Y-%m-%dT%H-%M-%SZ");
    let name: String = revision
        .unwrap_or("run")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+') { c } else { '_' })
        .take(64)
        .collect();
    Path::new("plimsoll").join(format!("{time}-{name}")).join("report.json")
}

/// Fails before a long run rather than after it: makes the folder and tries to write in it.
pub fn prepare(path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!("cannot write the report to {}: {error}", path.display()))
            .hint("name another place with --output")
    };
    if path.is_dir() {
        return Err(failed(io::Error::other("it is a folder")));
    }
    let folder = folder(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let probe = beside(path);
    File::create(&probe).map_err(failed)?;
    fs::remove_file(&probe).map_err(failed)
}

/// Writes the report so that a reader, or a crash, sees the old file or the new one and nothing between.
pub fn write(path: &Path, report: &Report) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::internal(format!("cannot write {}: {error}", path.display()));
    let folder = folder(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let temporary = beside(path);
    let mut file = File::create(&temporary).map_err(failed)?;
    file.write_all(report.to_json().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    // The rename itself lasts once the folder is synced; where folders cannot be opened there is nothing to do.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Reads a report that may come from anywhere.
pub fn read(path: &Path) -> Result<Report, Failure> {
    let broken = |why: String| Failure::new("report", Exit::Usage, format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => broken("there is no such file".to_owned()),
        _ => broken(error.to_string()),
    })?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
    Report::from_json(&bytes).map_err(|error| broken(error.to_string()))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name in the same folder, so that the rename stays on one file system.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_s_name_cannot_leave_the_folder() {
        let at = Timestamp::from_second(1_764_079_568).unwrap();
        let path = default_path(at, Some("feature/../../x y"));
        assert_eq!(path, Path::new("plimsoll/2025-11-25T14-06-08Z-feature_.._.._x_y/report.json"));
        assert_eq!(default_path(at, None), Path::new("plimsoll/2025-11-25T14-06-08Z-run/report.json"));
    }
}
