//! What is measured so far, on disk while the run goes on.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use plimsoll_domain::report::Report;

use super::{aside, read, replace, target};
use crate::exit::Failure;

/// `report.partial.json` beside where `report.json` will be: each finished phase, also after a crash. A thread of its
/// own writes, since a slow disk must not hold up the run.
#[derive(Debug)]
pub struct Partial {
    path: PathBuf,
    /// Takes as many as there are phases.
    reports: Option<SyncSender<Report>>,
    writer: Option<JoinHandle<Result<(), String>>>,
}

const PHASES: usize = 4;

impl Partial {
    /// For the report that will be at `path`. What an earlier run left under the same name is put aside.
    pub fn beside(report: &Path) -> Result<Self, Failure> {
        let path = target(report).with_extension("partial.json");
        if let Ok(earlier) = read(&path) {
            let kept = aside(&target(report), &earlier);
            std::fs::rename(&path, &kept)
                .map_err(|error| Failure::usage(format!("cannot rename {}: {error}", path.display())))?;
        }
        let (reports, received) = sync_channel(PHASES);
        let place = path.clone();
        let writer = std::thread::Builder::new()
            .name("partial report".to_owned())
            .spawn(move || write_each(&place, received))
            .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
        Ok(Self { path, reports: Some(reports), writer: Some(writer) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the report written, which holds the phases that are finished. Does not wait for the disk.
    pub fn keep(&self, report: Report) {
        if let Some(reports) = &self.reports {
            let _ = reports.try_send(report);
        }
    }

    /// The run is over: waits until all is written. Says why it could not be.
    pub fn finish(&mut self) -> Result<(), String> {
        self.reports = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err("the thread that writes ended".to_owned()),
            None => Ok(()),
        }
    }

    /// The report itself is on disk in its place.
    pub fn replaced(mut self) {
        let _ = self.finish();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Tells the last failure, if what was written last failed.
fn write_each(path: &Path, reports: Receiver<Report>) -> Result<(), String> {
    let mut last = Ok(());
    for report in reports {
        last = replace(path, report.to_json().as_bytes()).map_err(|error| error.to_string());
    }
    last
}
