//! What outlives the agent: who it is, what it was doing, its repositories, checkouts and logs.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use plimsoll_domain::ids::{ProjectSlug, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::tree::Process;
use crate::exit::Failure;

/// The agent's folder.
#[derive(Debug, Clone)]
pub(super) struct State(PathBuf);

/// The run that is going on, written before anything of it is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) run: RunId,
    pub(super) project: ProjectSlug,
    /// Process numbers mean nothing after a reboot.
    pub(super) boot: Option<String>,
    pub(super) supervisor: Option<Process>,
    /// The leader of the service's group.
    pub(super) service: Option<Process>,
}

/// Runs whose logs are kept.
const KEPT: usize = 50;
/// Of one run: two of its log, and what was measured.
const FILES: usize = 3;

impl State {
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let state = Self(folder.to_owned());
        for folder in [state.0.clone(), state.0.join("repositories"), state.0.join("checkouts"), state.0.join("logs")] {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| {
                Failure::usage(format!("cannot make {}: {error}", folder.display()))
                    .hint("`state` in runner.toml names another folder")
            })?;
        }
        Ok(state)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn outbox(&self) -> PathBuf {
        self.0.join("outbox")
    }

    pub(super) fn repository(&self, project: &ProjectSlug) -> PathBuf {
        self.0.join("repositories").join(format!("{project}.git"))
    }

    pub(super) fn checkout(&self, run: RunId) -> PathBuf {
        self.0.join("checkouts").join(run.to_string())
    }

    pub(super) fn plan_checkout(&self, run: RunId) -> PathBuf {
        self.0.join("checkouts").join(format!("{run}-plan"))
    }

    /// A folder with nothing in it.
    pub(super) fn empty(&self) -> PathBuf {
        let folder = self.0.join("empty");
        let _ = fs::remove_dir_all(&folder);
        let _ = DirBuilder::new().mode(0o700).create(&folder);
        folder
    }

    pub(super) fn checkouts(&self) -> PathBuf {
        self.0.join("checkouts")
    }

    pub(super) fn log(&self, run: RunId) -> PathBuf {
        self.0.join("logs").join(format!("{run}.log"))
    }

    /// Beside its log: what a run that came to no end has measured lies there as `<run>.partial.json`.
    pub(super) fn measured(&self, run: RunId) -> PathBuf {
        self.0.join("logs").join(format!("{run}.json"))
    }

    /// The whole report is in the outbox.
    pub(super) fn forget_measured(&self, run: RunId) {
        let _ = fs::remove_file(self.measured(run).with_extension("partial.json"));
    }

    /// For what belongs to no run.
    pub(super) fn own_log(&self) -> PathBuf {
        self.0.join("agent.log")
    }

    /// The runner's own name for itself, chosen once.
    pub(super) fn id(&self) -> Result<Uuid, Failure> {
        #[derive(Serialize, Deserialize)]
        struct Own {
            id: Uuid,
        }
        let path = self.0.join("runner.json");
        if let Some(Own { id }) = read(&path) {
            return Ok(id);
        }
        let own = Own { id: Uuid::now_v7() };
        write(&path, &own)?;
        Ok(own.id)
    }

    /// The run that an agent before this one did not come to the end of.
    pub(super) fn running(&self) -> Option<Running> {
        read(&self.0.join("running.json"))
    }

    pub(super) fn set_running(&self, running: &Running) -> Result<(), Failure> {
        write(&self.0.join("running.json"), running)
    }

    pub(super) fn clear_running(&self) {
        let _ = fs::remove_file(self.0.join("running.json"));
    }

    /// Removes what was written last the longest ago.
    pub(super) fn prune(&self) {
        let Ok(entries) = fs::read_dir(self.0.join("logs")) else { return };
        let mut logs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        logs.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
        let over = logs.len().saturating_sub(FILES * KEPT);
        for path in &logs[..over] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes a folder, if it is there; links in it are not followed.
pub(super) async fn remove_folder(folder: PathBuf) {
    let _ = tokio::task::spawn_blocking(|| fs::remove_dir_all(folder)).await;
}

/// The boot that process numbers belong to.
pub(super) fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Whole or not at all.
fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let temporary = path.with_extension("tmp");
    let text = serde_json::to_vec(value).map_err(|error| Failure::internal(error.to_string()))?;
    let done = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    done().map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}
