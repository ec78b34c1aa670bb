//! Repositories, configurations and agents of the tests.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::Server;

/// A folder with a repository, a runner.toml and an agent's state.
pub(crate) struct Bench {
    pub(crate) root: tempfile::TempDir,
    pub(crate) port: u16,
    /// A run of this bench alone: what carries its id is ended with it.
    pub(crate) run: String,
}

impl Bench {
    /// `recipe` are lines of `[project.test]`; without a `start` among them the service is started as it should be.
    pub(crate) fn new(server: &Server, recipe: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bench = Self { root: tempfile::tempdir().unwrap(), port, run: uuid::Uuid::now_v7().to_string() };
        bench.make_repository();
        let token = bench.at("token");
        fs::write(&token, "t0ken\n").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        bench.configure(server, recipe);
        bench
    }

    pub(crate) fn configure(&self, server: &Server, recipe: &str) {
        let set = |key: &str| recipe.lines().any(|line| line.starts_with(&format!("{key} =")));
        let mut lines = recipe.to_owned();
        let service = std::env::current_exe().unwrap();
        if !set("start") {
            lines += "start = 'exec \"$SERVICE\" service --exact --ignored'\n";
        }
        if !set("ready") {
            lines += "ready = { timeout = \"60s\", interval = \"50ms\" }\n";
        }
        if !set("repository") && !set("directory") {
            lines += &format!("repository = {:?}\n", self.at("repository"));
        }
        let origin = format!("http://127.0.0.1:{}", self.port);
        let text = format!(
            "server = {:?}\ntoken_file = {:?}\nname = \"test runner\"\nstate = {:?}\nlocks = {:?}\ngrace = \"500ms\"\n\
             labels = {{ gpu = \"none\" }}\n[limits]\nmax_workers = 50\n[project.test]\n{lines}\
             origins = [{origin:?}]\n[project.test.environment]\nSERVICE = {service:?}\nSERVICE_PORT = \"{}\"\nROOT = {:?}\n",
            server.address,
            self.at("token"),
            self.at("state"),
            self.at("locks"),
            self.port,
            self.root.path(),
        );
        fs::write(self.at("runner.toml"), text).unwrap();
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn plan(&self) -> String {
        format!(
            "project = \"other\"\n[service]\nurl = \"http://127.0.0.1:{}/predict\"\n[workload]\nbody = \"a\"\n\
             [smoke]\nduration = \"1s\"\n[warm_up]\nmin_requests = 2\nmax_duration = \"100ms\"\ntop = \"100ms\"\n\
             [staircase]\nworkers = [2]\nstep = \"1s\"\nsearch = false\n[stability]\nduration = \"1s\"\n",
            self.port
        )
    }

    fn make_repository(&self) {
        fs::create_dir(self.at("repository")).unwrap();
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.commit("plimsoll.toml", &self.plan());
        self.git(&["tag", "v1.0.0"]);
    }

    /// Writes a file into the repository; returns the commit.
    pub(crate) fn commit(&self, name: &str, text: &str) -> String {
        let path = self.at("repository").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.commit_all()
    }

    pub(crate) fn commit_all(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=change"]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(self.at("repository"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Moves the tag to a plan whose last phase takes so long.
    pub(crate) fn take(&self, long: &str) {
        let plan =
            self.plan().replace("[stability]\nduration = \"1s\"", &format!("[stability]\nduration = \"{long}\""));
        self.commit("plimsoll.toml", &plan);
        self.git(&["tag", "--force", "v1.0.0"]);
    }

    /// A job for the tagged revision.
    pub(crate) fn job(&self) -> Value {
        json!({
            "run_id": self.run, "lease": "01890a5d-ac96-774b-bcce-b302099a8058", "lease_s": 60, "attempt": 1,
            "kind": "measure", "project": "test", "revision": { "tag": "v1.0.0" }
        })
    }

    pub(crate) fn agent(&self, arguments: &[&str]) -> Agent {
        self.agent_with(arguments, |_| {})
    }

    /// An agent whose command is changed before it is started.
    pub(crate) fn agent_with(&self, arguments: &[&str], change: impl FnOnce(&mut Command)) -> Agent {
        let log = fs::File::create(self.at("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command
            .args(["agent", "--json", "--config"])
            .arg(self.at("runner.toml"))
            .args(arguments)
            .env("SECRET_OF_THE_AGENT", "s3cret")
            .env("PLIMSOLL_TOKEN", "from-the-environment")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        change(&mut command);
        Agent(command.spawn().unwrap())
    }

    /// A library in NVML's place, made of the stub for these hosts (`-D…`).
    pub(crate) fn nvml(&self, define: &str) -> PathBuf {
        let library = self.at("nvml.so");
        let stub = concat!(env!("CARGO_MANIFEST_DIR"), "/src/telemetry/gpu/stub.c");
        let made = Command::new("cc").args(["-shared", "-fPIC", define, stub, "-o"]).arg(&library).status();
        assert!(made.unwrap().success());
        library
    }

    /// A line before all sections of the configuration.
    pub(crate) fn configure_further(&self, line: &str) {
        let text = fs::read_to_string(self.at("runner.toml")).unwrap();
        fs::write(self.at("runner.toml"), format!("{line}\n{text}")).unwrap();
    }

    /// What the agent said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.at("stderr")).unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        wait_for(name, || fs::read_to_string(self.at(name)).ok().filter(|text| text.ends_with('\n')))
    }
}

/// A running agent; it ends with the test.
pub(crate) struct Agent(Child);

impl Agent {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Its exit code and the document on stdout.
    pub(crate) fn wait(mut self) -> (Option<i32>, Value) {
        let status = wait_for("the end of the agent", || self.0.try_wait().unwrap());
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (status.code(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a condition, bounded.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the agent has written down about its run.
pub(crate) fn running(bench: &Bench) -> Value {
    serde_json::from_slice(&fs::read(bench.at("state/running.json")).unwrap()).unwrap()
}

/// Whether a process is there and not over.
pub(crate) fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// Answers every request with an empty object.
pub(crate) fn serve_model(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                let head = head.to_ascii_lowercase();
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
                if reader.read_exact(&mut vec![0; length]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(2));
                if (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").is_err() {
                    return;
                }
            }
        });
    }
}
