//! A cluster for tests and tools: nothing in it lasts, and everybody gets a database of their own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use secrecy::SecretString;

use super::{Cluster, Options, PostgresError};
use crate::store;

/// A Postgres without `fsync`, in a folder that later processes use again, with a migrated database as template.
#[derive(Debug)]
pub struct Scratch {
    cluster: Cluster,
    made: AtomicU32,
}

#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error(transparent)]
    Store(#[from] store::StoreError),
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}

const TEMPLATE: &str = "template_plimsoll";
/// Processes that use scratch clusters at the same time.
const SLOTS: u32 = 64;

impl Scratch {
    /// Starts the first scratch cluster that no other process uses, and empties it.
    pub async fn start() -> Result<Self, ScratchError> {
        let cluster = tokio::task::spawn_blocking(claim).await??;
        let admin = cluster.url("postgres");
        store::database::drop_all(&admin).await?;
        store::database::create(&admin, TEMPLATE).await?;
        let pool = store::database::open(&cluster.url(TEMPLATE), 1).await?;
        store::migrate::run(&pool).await?;
        pool.close().await;
        Ok(Self { cluster, made: AtomicU32::new(0) })
    }

    /// The address of a new, migrated, empty database.
    pub async fn database(&self) -> Result<SecretString, ScratchError> {
        let name = format!("scratch_{}", self.made.fetch_add(1, Ordering::Relaxed));
        store::database::copy(&self.cluster.url("postgres"), TEMPLATE, &name).await?;
        Ok(self.cluster.url(&name))
    }
}

fn claim() -> Result<Cluster, PostgresError> {
    let uid = rustix::process::geteuid().as_raw();
    let mut last = None;
    for base in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        for slot in 0..SLOTS {
            let dir = base.join(format!("plimsoll-scratch-{uid}-{slot}"));
            match Cluster::start_over(&Options { dir, durable: false }) {
                Ok(cluster) => return Ok(cluster),
                // Anybody may have made a folder of this name in a folder for everybody.
                Err(error @ (PostgresError::InUse { .. } | PostgresError::Foreign { .. })) => last = Some(error),
                // Root's own temporary folder may be closed to the user as whom Postgres runs.
                Err(error @ PostgresError::NotReachable { .. }) => {
                    last = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Err(last.unwrap_or(PostgresError::NoBinaries))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_does_not_start_is_made_anew() {
        let folder = tempfile::TempDir::new_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let options = Options { dir: folder.path().join("slot"), durable: false };
        let data = options.dir.join("data");
        let spoilt: [&dyn Fn(); 3] = [
            // As a crash without fsync may leave it.
            &|| fs::write(data.join("global/pg_control"), "").unwrap(),
            &|| fs::write(data.join("PG_VERSION"), "9\n").unwrap(),
            &|| fs::remove_file(options.dir.join("password")).unwrap(),
        ];
        drop(Cluster::start_over(&options).unwrap());
        for spoil in spoilt {
            spoil();
            Cluster::start(&options).expect_err("it must be spoilt");
            drop(Cluster::start_over(&options).unwrap());
        }
    }
}
