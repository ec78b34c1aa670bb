//! The cluster's folder: its one owner, its password, its first use, and what an owner that was killed left behind.
//!
//! `lock` (held while we run) · `password` · `data/` (Postgres' own) · `socket/` · `log`

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use secrecy::SecretString;

use super::account::Account;
use super::binaries::Binaries;
use super::{PostgresError, USER, at, process};
use crate::access;

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Locked; the lock goes with the file, however we end.
    lock: File,
}

impl Drop for Directory {
    /// Closing is not enough: a process that another thread is just starting holds the file too, until it has become
    /// another program.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

/// For root in a folder of somebody else's.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
/// The log starts anew above this size.
const MAX_LOG: u64 = 10 << 20;

impl Directory {
    /// Creates the folder if need be and becomes its owner.
    pub(super) fn claim(path: &Path, account: &Account) -> Result<Self, PostgresError> {
        make_dir(path).map_err(at(path))?;
        account.check_owner(path)?;
        let path = path.canonicalize().map_err(at(path))?;
        account.check_way(&path)?;
        let lock = lock(&path)?;
        account.give(&path)?;
        Ok(Self { path, lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The major version of Postgres that made the database; `None` before first use.
    pub(super) fn version(&self) -> Result<Option<String>, PostgresError> {
        let path = self.data().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(at(&path)(e)),
        }
    }

    /// Runs `initdb` at first use. Returns the password.
    pub(super) fn prepare(
        &self,
        binaries: &Binaries,
        account: &Account,
        durable: bool,
    ) -> Result<SecretString, PostgresError> {
        let file = self.path.join("password");
        match self.version()? {
            Some(found) if found != binaries.version => {
                return Err(PostgresError::OtherVersion {
                    dir: self.path.clone(),
                    found,
                    ours: binaries.version.clone(),
                });
            }
            Some(_) if !file.exists() => return Err(PostgresError::NoPassword { dir: self.path.clone() }),
            Some(_) => {}
            None => self.init(binaries, account, &file, durable)?,
        }
        let socket = self.socket();
        if !socket.exists() {
            DirBuilder::new().mode(0o700).create(&socket).map_err(at(&socket))?;
        }
        account.give(&socket)?;
        let password = fs::read_to_string(&file).map_err(at(&file))?;
        Ok(SecretString::from(password.trim()))
    }

    /// Postgres recognises a pid file whose process is gone. Three cases are left to us: its process is an orphan of an
    /// owner that was killed (we hold the lock, so nobody else wants it), the pid now belongs to somebody else, or the
    /// file was never written to its end.
    pub(super) fn end_orphan(&self) -> Result<(), PostgresError> {
        let file = self.data().join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
            // Cut short by a crash or a full disk: Postgres would refuse to start until somebody removes it.
            return fs::remove_file(&file).map_err(at(&file));
        };
        match process::command_line(pid) {
            None => Ok(()),
            Some(command) if command.contains(&*self.data().to_string_lossy()) => {
                tracing::info!(pid, "ending the Postgres that an owner who was killed left behind");
                process::end(pid)
            }
            Some(_) => fs::remove_file(&file).map_err(at(&file)),
        }
    }

    /// Removes the database, for the next [`prepare`](Self::prepare) to make a new one.
    pub(super) fn wipe(&self) -> Result<(), PostgresError> {
        self.end_orphan()?;
        ["data", "data.new", "password", "socket"].iter().try_for_each(|name| remove(&self.path.join(name)))
    }

    /// Where Postgres writes what it has to say.
    pub(super) fn log(&self) -> Result<File, PostgresError> {
        let path = self.path.join("log");
        if fs::metadata(&path).is_ok_and(|facts| facts.len() > MAX_LOG) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true).mode(0o600).custom_flags(NO_LINK);
        options.open(&path).map_err(at(&path))
    }

    /// Into a folder beside, so that `data` exists only when it is whole.
    fn init(
        &self,
        binaries: &Binaries,
        account: &Account,
        password: &Path,
        durable: bool,
    ) -> Result<(), PostgresError> {
        let text = access::random().map_err(PostgresError::Random)?;
        // One of a first use that was cut short belongs to no database, and may be half.
        remove(password)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(password).map_err(at(password))?;
        writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(at(password))?;
        account.give(password)?;
        let fresh = self.path.join("data.new");
        remove(&fresh)?;
        let mut command = process::tied(&binaries.program("initdb"));
        command.arg("-D").arg(&fresh).arg("-U").arg(USER).arg("--pwfile").arg(password);
        command.args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
        if !durable {
            command.arg("--no-sync");
        }
        account.apply(&mut command);
        run(command.current_dir(&self.path))?;
        let data = self.data();
        fs::rename(&fresh, &data).map_err(at(&data))
    }
}

/// Whether there is a database in the folder, running or not.
pub fn is_made(dir: &Path) -> Result<bool, PostgresError> {
    let path = dir.join("data/PG_VERSION");
    path.try_exists().map_err(at(&path))
}

/// Port and password of the cluster that another process runs here. One that is just starting or ending has no port:
/// the directory is in use, and cannot be used.
pub(super) fn running(dir: &Path) -> Result<Option<(u16, SecretString)>, PostgresError> {
    let path = dir.join("lock");
    let lock = match OpenOptions::new().read(true).custom_flags(NO_LINK).open(&path) {
        Ok(lock) => lock,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(at(&path)(e)),
    };
    match lock.try_lock_shared() {
        Ok(()) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(e)) => return Err(at(&path)(e)),
    }
    // Line 4 of Postgres' pid file is the port, line 8 its state.
    let text = fs::read_to_string(dir.join("data/postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let port = lines.get(3).and_then(|port| port.parse().ok()).filter(|_| lines.get(7) == Some(&"ready"));
    let Some(port) = port else {
        let owner = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        return Err(PostgresError::InUse { dir: dir.to_owned(), owner });
    };
    let file = dir.join("password");
    let password = fs::read_to_string(&file).map_err(at(&file))?;
    Ok(Some((port, SecretString::from(password.trim()))))
}

/// Removes a file or a folder with all in it, if it is there.
fn remove(path: &Path) -> Result<(), PostgresError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(path)(e)),
        _ => Ok(()),
    }
}

fn run(command: &mut Command) -> Result<(), PostgresError> {
    let failed = |why| PostgresError::Command { what: "initdb", why };
    let output = command.stdin(Stdio::null()).output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

/// Makes a folder that other users may at most pass through: as root, that of Postgres has to. What is secret in it has
/// a mode of its own.
pub fn make_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    // Whatever the umask.
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// The lock file also says who holds it.
fn lock(dir: &Path) -> Result<File, PostgresError> {
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
    let mut file = options.open(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let owner = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(PostgresError::InUse { dir: dir.to_owned(), owner });
        }
        Err(TryLockError::Error(e)) => return Err(at(&path)(e)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(at(&path))?;
    Ok(file)
}
