//! Reports on disk: whole or not at all, and before anything is sent.

mod file;
mod partial;
mod place;
mod space;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_domain::report::{MAX_BYTES, Report, Status};

use crate::exit::{Exit, Failure};
use crate::upload::ZSTD;

pub(crate) use file::{replace, sync_folder};
pub use partial::Partial;
pub use space::{Space, space};

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
            Ok(()) => {
                // What lies in a folder lasts once the folder itself does.
                sync_folder(&all);
                sync_folder(if root.as_os_str().is_empty() { Path::new(".") } else { root });
                return Ok(folder.join("report.json"));
            }
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

/// Fails before a long run rather than after it: makes the folder, looks for room and tries to write in it.
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
    let folder = file::folder(path);
    fs::create_dir_all(folder).map_err(failed)?;
    space(folder)?;
    let probe = file::beside(path);
    File::create(&probe).map_err(failed)?;
    fs::remove_file(&probe).map_err(failed)
}

/// A report's place on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub path: PathBuf,
    /// Why it is not where it was to be.
    pub elsewhere: Option<String>,
}

/// Writes the report to `path`, or, when that cannot be done any more, to another folder: what a run measured is not
/// lost to a disk that filled up meanwhile.
pub fn save(path: &Path, report: &Report) -> Result<Saved, Failure> {
    save_or(path, report, &place::others())
}

fn save_or(path: &Path, report: &Report, others: &[PathBuf]) -> Result<Saved, Failure> {
    let (place, error) = match put(path, report) {
        Ok(path) => return Ok(Saved { path, elsewhere: None }),
        Err(failed) => failed,
    };
    let why = format!("The report could not be written to {}: {error}.", place.display());
    let name = format!("plimsoll-{}.json", report.run_id);
    let written = others.iter().find_map(|folder| put(&folder.join(&name), report).ok());
    match written {
        Some(path) => Ok(Saved { elsewhere: Some(format!("{why} It is kept at {}.", path.display())), path }),
        None => Err(Failure::internal(format!("cannot write {}: {error}, nor to another folder", place.display()))),
    }
}

/// Writes the report so that a reader, or a crash, sees the old file or the new one and nothing between. A run that did
/// not come to its end does not replace an earlier report: it goes beside it. Returns where the report is.
pub fn write(path: &Path, report: &Report) -> Result<PathBuf, Failure> {
    put(path, report).map_err(|(place, error)| Failure::internal(format!("cannot write {}: {error}", place.display())))
}

fn put(path: &Path, report: &Report) -> Result<PathBuf, (PathBuf, io::Error)> {
    let place = target(path);
    let place = if report.status != Status::Complete && place.exists() { aside(&place, report) } else { place };
    match replace(&place, report.to_json().as_bytes()) {
        Ok(()) => Ok(place),
        Err(error) => Err((place, error)),
    }
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

/// Reads a report that may come from anywhere, compressed or not.
pub fn read(path: &Path) -> Result<Report, Failure> {
    let broken = |why: String| Failure::new("report", Exit::Usage, format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => broken("there is no such file".to_owned()),
        _ => broken(error.to_string()),
    })?;
    if file.metadata().is_ok_and(|data| data.len() > MAX_BYTES as u64) {
        return Err(broken(too_large()));
    }
    let bytes = bounded(file).map_err(|error| broken(error.to_string()))?;
    parse(&bytes).map_err(broken)
}

/// A report's bytes, compressed or not.
pub(crate) fn parse(bytes: &[u8]) -> Result<Report, String> {
    let unpacked = if bytes.starts_with(&GZIP) {
        Some(bounded(flate2::read::GzDecoder::new(bytes)))
    } else if bytes.starts_with(&ZSTD) {
        Some(zstd::stream::read::Decoder::with_buffer(bytes).and_then(bounded))
    } else {
        None
    };
    let unpacked = unpacked.transpose().map_err(|error| error.to_string())?;
    let plain = unpacked.as_deref().unwrap_or(bytes);
    if plain.len() > MAX_BYTES {
        return Err(too_large());
    }
    Report::from_json(plain).map_err(|error| error.to_string())
}

fn too_large() -> String {
    format!("too large for a report: at most {} MiB are read", MAX_BYTES >> 20)
}

/// How every gzip stream begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Of what has no length of its own no more is read than a report may have, and one byte.
pub(crate) fn bounded(source: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
