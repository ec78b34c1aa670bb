//! Files of a folder that somebody else filled: no path leads out of it, and no link is followed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use plimsoll_domain::job::check_path;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// An open folder. Whatever happens to its name meanwhile, the files are those of this folder.
#[derive(Debug)]
pub struct Confined(OwnedFd);

impl Confined {
    /// The folder itself is named by somebody who is trusted, and may be reached through links.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, folder, FOLDER, Mode::empty())?))
    }

    /// A folder below.
    pub(crate) fn folder(&self, path: &str) -> Result<Self, String> {
        let folder = self.0.try_clone().map_err(|error| error.to_string())?;
        match plain(path)? {
            "" => Ok(Self(folder)),
            path => walk(folder, path.split('/'), path).map(Self),
        }
    }

    /// An ordinary file below, for reading.
    pub(super) fn file(&self, path: &str) -> Result<File, String> {
        let path = plain(path)?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Self(folder) = self.folder(folder)?;
        // A pipe without a writer does not hold the open up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&folder, name, flags, Mode::empty()).map_err(|errno| said(errno, path))?);
        match file.metadata() {
            Ok(data) if data.is_file() => Ok(file),
            Ok(_) => Err("it is no file".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A path that has no way up; `./` in front of it says nothing.
fn plain(path: &str) -> Result<&str, String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_empty() {
        return Ok(path);
    }
    check_path(path).map(|()| path)
}

/// Part by part, each opened in the folder before it: a link in any place is refused by the kernel.
fn walk<'p>(mut folder: OwnedFd, parts: impl Iterator<Item = &'p str>, path: &str) -> Result<OwnedFd, String> {
    for part in parts {
        folder = openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|errno| said(errno, path))?;
    }
    Ok(folder)
}

fn said(errno: Errno, path: &str) -> String {
    match errno {
        Errno::LOOP | Errno::NOTDIR => {
            format!("{path:?} leads through a link or no folder, and links are not followed")
        }
        Errno::NOENT => "there is no such file in the checkout".to_owned(),
        other => io::Error::from(other).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_below_are_read_and_nothing_else_is() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("bench/deep")).unwrap();
        std::fs::write(at("bench/deep/plan"), "plan").unwrap();
        symlink(outside.path().join("secret"), at("link")).unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink("bench", at("inside")).unwrap();
        rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
        let confined = Confined::open(root.path()).unwrap();
        for good in ["bench/deep/plan", "./bench/deep/plan"] {
            let mut text = String::new();
            confined.file(good).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "plan", "{good}");
        }
        let absolute = outside.path().join("secret").display().to_string();
        for bad in
            ["link", "out/secret", "inside/deep/plan", "pipe", "bench", "../x", "bench/../../x", &absolute, "", "no"]
        {
            assert!(confined.file(bad).is_err(), "{bad}");
        }
        assert!(confined.folder("out").is_err() && confined.folder("..").is_err());
        assert!(confined.folder("bench").unwrap().file("deep/plan").is_ok());
    }
}
