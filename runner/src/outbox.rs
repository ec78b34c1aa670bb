//! Reports on their way to the server, in a folder that outlives crashes and restarts.
//!
//! ```text
//! <run>.json.gz            waits to be sent
//! sent/<run>.json.gz       the server has it; the newest few are kept
//! refused/<run>.json.gz    the server will not take it, for the reason in <run>.txt beside it
//! ```
//!
//! A report is in exactly one of them at any moment, whenever the program is killed: it is moved by a rename after the
//! server's answer, and sending it twice is no harm. Two processes on one folder take turns.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::Report;
use tokio::sync::watch;

use crate::exit::Failure;
use crate::spool;
use crate::upload::{Package, Pauses, Server, Tried, Uploaded, Wait};

/// A folder of reports.
#[derive(Debug)]
pub struct Outbox {
    folder: PathBuf,
    tell: fn(&Wait<'_>),
}

/// What became of the reports.
#[derive(Debug, Default)]
pub struct Sent {
    pub uploaded: Vec<Uploaded>,
    pub refused: Vec<Refused>,
    /// Reports that still wait.
    pub left: usize,
}

/// A report that the server will never take. It is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub path: PathBuf,
    pub why: String,
}

/// How many of those that are sent are kept.
const SENT_KEPT: usize = 20;
const EXTENSION: &str = ".json.gz";
/// How often a process looks whether the other one is done with the folder.
const TURN: Duration = Duration::from_millis(200);

impl Outbox {
    /// The outbox in a folder, which is made.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let outbox = Self { folder: folder.to_owned(), tell: |_| {} };
        for folder in [outbox.folder.clone(), outbox.sent(), outbox.refused()] {
            fs::create_dir_all(&folder)
                .map_err(|error| Failure::usage(format!("cannot make {}: {error}", folder.display())))?;
        }
        // What lies in a folder lasts once the folder itself does.
        spool::sync_folder(&outbox.folder);
        outbox.folder.parent().iter().for_each(|parent| spool::sync_folder(parent));
        Ok(outbox)
    }

    /// Who hears of each pause.
    #[must_use]
    pub fn telling(self, tell: fn(&Wait<'_>)) -> Self {
        Self { tell, ..self }
    }

    /// Takes a report. Once this returns it will be sent, whatever happens to the program or the machine.
    pub fn keep(&self, report: &Report) -> Result<PathBuf, Failure> {
        let path = self.folder.join(format!("{}{EXTENSION}", report.run_id));
        let failed = |why: String| Failure::internal(format!("cannot write {}: {why}", path.display()));
        let package = Package::of(report).map_err(failed)?;
        // Whoever has the lock may take what is half written for left behind.
        let _writing = self.lock_file("keep.lock").and_then(|file| file.lock().map(|()| file));
        let _writing = _writing.map_err(|error| failed(error.to_string()))?;
        spool::replace(&path, package.bytes()).map_err(|error| failed(error.to_string()))?;
        Ok(path)
    }

    /// The reports that wait, the oldest first.
    pub fn pending(&self) -> Result<Vec<PathBuf>, Failure> {
        reports(&self.folder)
            .map_err(|error| Failure::internal(format!("cannot read {}: {error}", self.folder.display())))
    }

    /// Sends all that wait, trying again for as long as it takes or until `stop` turns true. A report that is kept
    /// meanwhile is sent too.
    pub async fn send_all(&self, server: &Server, mut stop: watch::Receiver<bool>) -> Result<Sent, Failure> {
        let mut sent = Sent::default();
        let ended = tokio::select! {
            ended = self.send_until_empty(server, &mut sent) => ended,
            // What is under way is cut; the next time it goes on from there.
            () = stopped(&mut stop) => Ok(()),
        };
        ended?;
        sent.left = self.pending()?.len();
        Ok(sent)
    }

    async fn send_until_empty(&self, server: &Server, sent: &mut Sent) -> Result<(), Failure> {
        let _turn = self.turn().await?;
        self.sweep();
        let mut pauses = Pauses::forever();
        let mut furthest = BTreeMap::new();
        loop {
            let before = sent.uploaded.len() + sent.refused.len();
            let Some((tried, run_id, arrived)) = self.pass(server, sent).await? else {
                if self.pending()?.is_empty() {
                    return Ok(());
                }
                continue;
            };
            let moved_on = furthest.insert(run_id, arrived).is_none_or(|earlier| arrived > earlier);
            if moved_on || sent.uploaded.len() + sent.refused.len() > before {
                pauses.restart();
            }
            let Some(pause) = pauses.next(tried.asked) else { return Ok(()) };
            (self.tell)(&pauses.wait(&tried, pause));
            tokio::time::sleep(pause).await;
        }
    }

    /// Tries each once, until the server cannot be reached. Of the first that could not be sent now: why, which, and how
    /// much of it arrived all the same.
    async fn pass(&self, server: &Server, sent: &mut Sent) -> Result<Option<(Tried, RunId, u64)>, Failure> {
        let mut first = None;
        for path in self.pending()? {
            let package = match load(&path) {
                Ok(Some(package)) => package,
                Ok(None) => continue,
                Err(why) => {
                    sent.refused.push(self.refuse(&path, why)?);
                    continue;
                }
            };
            match server.try_to_deliver(&package).await {
                Ok(uploaded) => {
                    self.file_away(&path)?;
                    sent.uploaded.push(uploaded);
                }
                Err(tried) if tried.error.is_for_good() => {
                    let why = format!("{} refuses it: {}", server.address(), tried.error.why());
                    sent.refused.push(self.refuse(&path, why)?);
                }
                // A token can be renewed, an address corrected, a server updated. The next may be another project's.
                Err(tried) => {
                    let others_may_pass = tried.status().is_some();
                    first.get_or_insert((tried, package.run_id(), package.arrived()));
                    if !others_may_pass {
                        break;
                    }
                }
            }
        }
        Ok(first)
    }

    /// The server has it.
    fn file_away(&self, path: &Path) -> Result<(), Failure> {
        self.rename(path, &self.sent())?;
        // Their names rise with time.
        let kept = reports(&self.sent()).unwrap_or_default();
        for old in kept.iter().rev().skip(SENT_KEPT) {
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    /// The reason first: a report among the refused always has one.
    fn refuse(&self, path: &Path, why: String) -> Result<Refused, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace(EXTENSION, ".txt");
        let reason = self.refused().join(name);
        spool::replace(&reason, format!("{why}\n").as_bytes())
            .map_err(|error| Failure::internal(format!("cannot write {}: {error}", reason.display())))?;
        Ok(Refused { path: self.rename(path, &self.refused())?, why })
    }

    fn rename(&self, path: &Path, to: &Path) -> Result<PathBuf, Failure> {
        let new = to.join(path.file_name().unwrap_or_default());
        fs::rename(path, &new).map_err(|error| {
            Failure::internal(format!("cannot move {} to {}: {error}", path.display(), to.display()))
        })?;
        spool::sync_folder(to);
        spool::sync_folder(&self.folder);
        Ok(new)
    }

    /// Waits until no other process sends from this folder.
    async fn turn(&self) -> Result<File, Failure> {
        let failed = |error: io::Error| Failure::internal(format!("cannot lock {}: {error}", self.folder.display()));
        let file = self.lock_file("send.lock").map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(TURN).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        File::options().create(true).truncate(false).write(true).open(self.folder.join(name))
    }

    /// Takes away what killed programs left half written.
    fn sweep(&self) {
        let Ok(writing) = self.lock_file("keep.lock") else { return };
        if writing.try_lock().is_err() {
            return;
        }
        for folder in [&self.folder, &self.refused()] {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            for left in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "tmp")) {
                let _ = fs::remove_file(left);
            }
        }
    }

    fn sent(&self) -> PathBuf {
        self.folder.join("sent")
    }

    fn refused(&self) -> PathBuf {
        self.folder.join("refused")
    }
}

/// The reports in a folder, by their names, which rise with the time of their runs.
fn reports(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut reports = names.collect::<io::Result<Vec<PathBuf>>>()?;
    reports.retain(|path| path.to_string_lossy().ends_with(EXTENSION) && path.is_file());
    reports.sort();
    Ok(reports)
}

/// What is to be sent; `None` when another hand took it away.
fn load(path: &Path) -> Result<Option<Package>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let named: Option<RunId> = path.file_name().and_then(|name| name.to_str()?.strip_suffix(EXTENSION)?.parse().ok());
    let report = spool::read(path).map_err(|failure| failure.message)?;
    match named {
        Some(run_id) if run_id == report.run_id => Ok(Some(Package::packed(run_id, bytes))),
        _ => Err(format!("its name is not that of its run, {}", report.run_id)),
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
