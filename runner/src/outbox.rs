//! Reports on their way to the server, in a folder that outlives crashes and restarts.
//!
//! ```text
//! <run>.json.zst           waits to be sent
//! sent/<run>.json.zst      the server has it; the newest few are kept
//! refused/<run>.json.zst   the server will not take it, for the reason in <run>.txt beside it
//! ```
//!
//! A report is in exactly one of them at any moment, whenever the program is killed: it is moved by a rename after the
//! server's answer, and sending it twice is no harm. Two processes on one folder take turns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_domain::ids::{ProjectSlug, RunId};
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
    /// Why the first of them is not waited for.
    pub why: Option<String>,
}

/// When sending ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Empty,
    /// The server is there, and what is left does not go through.
    NothingGoes,
}

/// What could not be sent now.
struct Held {
    tried: Tried,
    /// How much of which report arrived all the same.
    arrived: Option<(RunId, u64)>,
    /// Whether nothing of the pass failed for want of the server.
    is_server_there: bool,
}

/// A report that the server will never take. It is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub path: PathBuf,
    pub why: String,
}

/// How many of those that are sent are kept.
const SENT_KEPT: usize = 20;
const EXTENSION: &str = ".json.zst";
/// What an earlier version left is sent too.
const EARLIER: &str = ".json.gz";
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
    pub async fn send_all(&self, server: &Server, stop: watch::Receiver<bool>) -> Result<Sent, Failure> {
        self.send(server, stop, Until::Empty).await
    }

    /// The same, but what the server itself does not take now, say for want of a right, and what cannot be read is not
    /// waited for.
    pub async fn send_what_goes(&self, server: &Server, stop: watch::Receiver<bool>) -> Result<Sent, Failure> {
        self.send(server, stop, Until::NothingGoes).await
    }

    /// The projects of the reports that wait.
    pub fn projects(&self) -> Result<BTreeSet<ProjectSlug>, Failure> {
        let of = |path: PathBuf| match load(&path) {
            Loaded::Report(_, project) => Some(project),
            _ => None,
        };
        Ok(self.pending()?.into_iter().filter_map(of).collect())
    }

    async fn send(&self, server: &Server, mut stop: watch::Receiver<bool>, until: Until) -> Result<Sent, Failure> {
        let mut sent = Sent::default();
        let ended = tokio::select! {
            ended = self.send_until(until, server, &mut sent) => ended,
            // What is under way is cut; the next time it goes on from there.
            () = stopped(&mut stop) => Ok(()),
        };
        ended?;
        sent.left = self.pending()?.len();
        Ok(sent)
    }

    async fn send_until(&self, until: Until, server: &Server, sent: &mut Sent) -> Result<(), Failure> {
        let _turn = self.turn().await?;
        self.sweep();
        let mut pauses = Pauses::forever();
        let mut furthest = BTreeMap::new();
        loop {
            let before = sent.uploaded.len() + sent.refused.len();
            let Some(held) = self.pass(server, sent).await? else {
                if self.pending()?.is_empty() {
                    return Ok(());
                }
                continue;
            };
            if until == Until::NothingGoes && held.is_server_there {
                sent.why = Some(held.tried.error.why().to_owned());
                return Ok(());
            }
            let Held { tried, arrived, .. } = held;
            let moved_on = arrived.is_some_and(|(run_id, arrived)| {
                furthest.insert(run_id, arrived).is_none_or(|earlier| arrived > earlier)
            });
            if moved_on || sent.uploaded.len() + sent.refused.len() > before {
                pauses.restart();
            }
            let Some(pause) = pauses.next(tried.asked) else { return Ok(()) };
            (self.tell)(&pauses.wait(&tried, pause));
            tokio::time::sleep(pause).await;
        }
    }

    /// Tries each once, until the server cannot be reached; returns the first that could not be sent now.
    async fn pass(&self, server: &Server, sent: &mut Sent) -> Result<Option<Held>, Failure> {
        let mut first: Option<Held> = None;
        let mut is_server_there = true;
        for path in self.pending()? {
            let package = match load(&path) {
                Loaded::Report(package, _) => package,
                Loaded::Gone => continue,
                Loaded::Unreadable(error) => {
                    let tried = Tried::unreachable(format!("{} cannot be read: {error}", path.display()));
                    first.get_or_insert(Held { tried, arrived: None, is_server_there });
                    continue;
                }
                Loaded::Broken(why) => {
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
                    is_server_there &= tried.error.is_the_server_s();
                    let arrived = Some((package.run_id(), package.arrived()));
                    first.get_or_insert(Held { tried, arrived, is_server_there });
                    if !others_may_pass {
                        break;
                    }
                }
            }
        }
        Ok(first.map(|held| Held { is_server_there, ..held }))
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
        let reason = self.refused().join(format!("{}.txt", run_of(path).unwrap_or("report")));
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
    reports.retain(|path| run_of(path).is_some() && path.is_file());
    reports.sort();
    Ok(reports)
}

/// The run that a report's file is named after.
fn run_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(EXTENSION).or_else(|| name.strip_suffix(EARLIER))
}

/// A file of the outbox.
enum Loaded {
    Report(Package, ProjectSlug),
    /// Another hand took it away.
    Gone,
    /// The disk, or this process, does not let it be read now.
    Unreadable(io::Error),
    /// What it holds is not the report that it should be.
    Broken(String),
}

fn load(path: &Path) -> Loaded {
    let bytes = match File::open(path).and_then(spool::bounded) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Loaded::Gone,
        Err(error) => return Loaded::Unreadable(error),
    };
    let named = run_of(path).and_then(|run| run.parse::<RunId>().ok());
    match spool::parse(&bytes) {
        Ok(report) if named == Some(report.run_id) => {
            Loaded::Report(Package::packed(report.run_id, bytes), report.project)
        }
        Ok(report) => Loaded::Broken(format!("its name is not that of its run, {}", report.run_id)),
        Err(why) => Loaded::Broken(format!("{}: {why}", path.display())),
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
