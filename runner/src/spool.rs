//! Reports on disk: whole or not at all, and before anything is sent.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_domain::report::{MAX_BYTES, Report, Status};

use crate::exit::{Exit, Failure};

/// Where a run's report goes unless a flag says otherwise: `plimsoll/2025-11-25T14-06-08Z-8d1e07b/report.json` below
/// `root`. The folder is made, so that runs started in the same second do not share one.
pub fn claim(root: &Path, started_at: Timestamp, revision: Option<&str>) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: io::Error| Failure::usage(format!("cannot make {}: {error}", path.display()));
    let all = root.join("plimsoll");
    fs::create_dir_all(&all).map_err(|error| failed(&all, error))?;
    let name = folder_name(started_at, revision);
    let names = std::iter::once(name.clone()).chain((2..100).map(|n| format!("{name}-{n}")));
    for folder in names.map(|name| all.join(name)) {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder.join("report.json")),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&folder, error)),
        }
    }
    Err(Failure::usage(format!("{} and its like exist already", all.join(name).display())).hint("give --output"))
}

/// A revision's name may hold anything; a folder's may not.
fn folder_name(started_at: Timestamp, revision: Option<&str>) -> String {
    let time = started_at.strftime("%Y-%m-%dT%H-%M-%SZ");
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+') { c } else { '_' };
    let name: String = revision.unwrap_or("run").chars().map(plain).take(64).collect();
    format!("{time}-{name}")
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
    // A device or a pipe would be replaced by a file.
    if path.exists() && !path.is_file() {
        return Err(failed(io::Error::other("it is no ordinary file")));
    }
    let path = &target(path);
    let folder = folder(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let probe = beside(path);
    File::create(&probe).map_err(failed)?;
    fs::remove_file(&probe).map_err(failed)
}

/// Writes the report so that a reader, or a crash, sees the old file or the new one and nothing between. A run that did
/// not come to its end does not replace an earlier report: it goes beside it. Returns where the report is.
pub fn write(path: &Path, report: &Report) -> Result<PathBuf, Failure> {
    let place = target(path);
    let place = if report.status != Status::Complete && place.exists() { aside(&place, report) } else { place };
    let failed = |error: io::Error| Failure::internal(format!("cannot write {}: {error}", place.display()));
    let path = place.as_path();
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
    Ok(place)
}

/// Where a path leads: a link is written through, not replaced.
fn target(path: &Path) -> PathBuf {
    if path.is_symlink() { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() }
}

fn aside(path: &Path, report: &Report) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-incomplete-{}.json", report.run_id));
    path.with_file_name(name)
}

/// Reads a report that may come from anywhere.
pub fn read(path: &Path) -> Result<Report, Failure> {
    let broken = |why: String| Failure::new("report", Exit::Usage, format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => broken("there is no such file".to_owned()),
        _ => broken(error.to_string()),
    })?;
    if file.metadata().is_ok_and(|data| data.len() > MAX_BYTES as u64) {
        return Err(broken(format!("too large for a report: at most {} MiB are read", MAX_BYTES >> 20)));
    }
    let mut bytes = Vec::new();
    // Of what has no length of its own no more is read either.
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
    use plimsoll_domain::synthetic::Synthetic;

    use super::*;

    #[test]
    fn a_revision_s_name_cannot_leave_the_folder() {
        let at = Timestamp::from_second(1_764_079_568).unwrap();
        assert_eq!(folder_name(at, Some("feature/../../x y")), "2025-11-25T14-06-08Z-feature_.._.._x_y");
        assert_eq!(folder_name(at, None), "2025-11-25T14-06-08Z-run");
    }

    #[test]
    fn runs_of_the_same_second_have_folders_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let at = Timestamp::from_second(1_764_079_568).unwrap();
        let first = claim(root.path(), at, Some("v1")).unwrap();
        let second = claim(root.path(), at, Some("v1")).unwrap();
        assert!(first.ends_with("plimsoll/2025-11-25T14-06-08Z-v1/report.json"), "{first:?}");
        assert!(second.ends_with("plimsoll/2025-11-25T14-06-08Z-v1-2/report.json"), "{second:?}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_before_the_run() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        for path in ["file/report.json", "."] {
            assert_eq!(prepare(&root.path().join(path)).unwrap_err().exit, Exit::Usage, "{path}");
        }
        let pipe = root.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(prepare(&pipe).unwrap_err().exit, Exit::Usage);
        let good = root.path().join("new/report.json");
        prepare(&good).unwrap();
        assert_eq!(std::fs::read_dir(root.path().join("new")).unwrap().count(), 0, "the probe is gone");
    }

    #[test]
    fn an_unfinished_run_leaves_an_earlier_report_alone_and_links_are_written_through() {
        let root = tempfile::tempdir().unwrap();
        let (file, link) = (root.path().join("keep.json"), root.path().join("link.json"));
        let whole = Synthetic::default().report();
        assert_eq!(write(&file, &whole).unwrap(), file);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut cut = whole.clone();
        cut.status = Status::Interrupted;
        let beside = write(&link, &cut).unwrap();
        assert_ne!(beside, file);
        assert_eq!(read(&file).unwrap().status, Status::Complete);
        assert_eq!(read(&beside).unwrap().status, Status::Interrupted);
        write(&link, &whole).unwrap();
        assert!(link.is_symlink(), "the link is still one");
    }
}
