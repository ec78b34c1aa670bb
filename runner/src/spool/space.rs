//! Room on a disk, asked for before a run rather than after it.

use std::path::Path;

use plimsoll_domain::format;
use plimsoll_domain::report::MAX_BYTES;

use crate::exit::Failure;

/// What a folder's file system has left for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub bytes: u64,
    /// Files that can still be made; `None` where they are not counted.
    pub files: Option<u64>,
}

/// The largest report four times: what is measured so far, its successor being written, the report, and its copy on the
/// way to the server.
const NEEDED: u64 = 4 * MAX_BYTES as u64;
const FILES_NEEDED: u64 = 16;

/// The room in a folder, when it is enough for a run.
///
/// # Errors
/// It is not, or cannot be told.
pub fn space(folder: &Path) -> Result<Space, Failure> {
    let at = folder.display();
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| Failure::usage(format!("cannot tell how much room there is in {at}: {error}")))?;
    let files = (stat.f_files > 0).then_some(stat.f_favail);
    enough(folder, Space { bytes: stat.f_bavail.saturating_mul(stat.f_frsize), files })
}

fn enough(folder: &Path, space: Space) -> Result<Space, Failure> {
    let at = folder.display();
    let full = |message: String| Err(Failure::usage(message).hint("make room, or name another place with --output"));
    let mib = |bytes: u64| format::count(bytes >> 20);
    if space.bytes < NEEDED {
        return full(format!(
            "too little room for a run's reports in {at}: {} MiB are free, {} MiB are needed",
            mib(space.bytes),
            mib(NEEDED)
        ));
    }
    match space.files {
        Some(files) if files < FILES_NEEDED => {
            full(format!("too little room for a run's reports in {at}: its file system takes only {files} more files"))
        }
        _ => Ok(space),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_with_what_is_there_and_what_is_needed() {
        let folder = Path::new("reports");
        let enough = |bytes, files| enough(folder, Space { bytes, files });
        assert!(enough(NEEDED, None).is_ok() && enough(NEEDED, Some(16)).is_ok());
        let few = enough(NEEDED - 1, None).unwrap_err();
        assert_eq!(few.exit, crate::exit::Exit::Usage);
        assert!(few.message.contains("255 MiB are free, 256 MiB are needed"), "{few}");
        let few = enough(u64::MAX, Some(3)).unwrap_err();
        assert!(few.message.contains("in reports") && few.message.contains("only 3 more files"), "{few}");
    }

    #[test]
    fn a_folder_s_room_is_asked_of_its_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let stat = rustix::fs::statvfs(folder.path()).unwrap();
        let told = space(folder.path());
        assert_eq!(told.is_ok(), stat.f_bavail * stat.f_frsize >= NEEDED);
        assert!(space(&folder.path().join("none")).unwrap_err().message.contains("cannot tell"));
    }
}
