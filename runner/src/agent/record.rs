//! The output of a run's commands on disk: the newest part, bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// One file holds so much; the one before it is kept too.
const MOST: u64 = 8 << 20;

/// A log that is written on.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Record {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), length: file.metadata()?.len(), file })
    }

    /// What cannot be written is lost: a full disk does not stop a run.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.length > MOST {
            let _ = self.turn();
        }
        if self.file.write_all(bytes).is_ok() {
            self.length += bytes.len() as u64;
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.1"))?;
        *self = Self::open(&self.path)?;
        Ok(())
    }
}

/// The last lines of a log, fit for another log: few, short, and without control characters.
pub(super) fn tail(path: &Path) -> Vec<String> {
    const BYTES: u64 = 4 << 10;
    const LINES: usize = 10;
    const WIDE: usize = 300;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).take(WIDE).collect::<String>();
    let lines: Vec<String> = text.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}
