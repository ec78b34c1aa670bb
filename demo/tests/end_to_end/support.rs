//! What the tests share: their turn, the parts as processes, the runner's answers.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use plimsoll_demo::service::Parameters;
use plimsoll_domain::report::Report;
use serde_json::Value;

/// The program under test, which is also each of its parts. It knows nothing of the database, the server or the tokens
/// that whoever runs the tests may have set.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-demo"));
    let ours = |name: &std::ffi::OsString| name == "DATABASE_URL" || name.to_string_lossy().starts_with("PLIMSOLL_");
    for name in std::env::vars_os().map(|(name, _)| name).filter(ours) {
        command.env_remove(name);
    }
    command
}

/// A test's turn; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Kind);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Measures,
    IsBusy,
}

/// How many tests of which kind have their turn now.
static TURNS: Mutex<Option<(Kind, usize)>> = Mutex::new(None);
static OVER: Condvar = Condvar::new();

/// The turn of a test that measures. Several may do so at once, since each needs a fraction of a core.
pub(crate) fn measures() -> Turn {
    Turn::take(Kind::Measures)
}

/// The turn of a test that keeps the machine busy and says nothing about time: only others of its kind run beside it.
pub(crate) fn is_busy() -> Turn {
    Turn::take(Kind::IsBusy)
}

impl Turn {
    fn take(own: Kind) -> Self {
        // A test that failed is no reason for others to fail.
        let turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let others = |turns: &mut Option<(Kind, usize)>| turns.is_some_and(|(kind, _)| kind != own);
        let mut turns = OVER.wait_while(turns, others).unwrap_or_else(PoisonError::into_inner);
        let count = turns.map_or(0, |(_, count)| count);
        *turns = Some((own, count + 1));
        Self(own)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let left = turns.map_or(0, |(_, count)| count.saturating_sub(1));
        *turns = (left > 0).then_some((self.0, left));
        OVER.notify_all();
    }
}

/// A part that serves; it ends when this is dropped, or with the test however that ends.
#[derive(Debug)]
pub(crate) struct Serving {
    process: Child,
    /// What it said first: its address.
    pub address: String,
}

impl Serving {
    pub(crate) fn service(parameters: &Parameters) -> Self {
        Self::start("service", parameters.to_args())
    }

    /// The server with a database of its own in this directory.
    pub(crate) fn server(data_dir: &Path) -> Self {
        let data_dir = format!("--data-dir={}", data_dir.display());
        Self::start("server", [data_dir])
    }

    fn start(part: &str, args: impl IntoIterator<Item = String>) -> Self {
        let mut process = program()
            .args(["--lifeline", part])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        let stdout = process.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut address).expect("stdout is text");
        assert!(address.starts_with("http://"), "the {part} did not say its address but {address:?}");
        Self { process, address: address.trim().to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// `plimsoll` with these arguments.
pub(crate) fn plimsoll<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    program().arg("runner").args(args).stdin(Stdio::null()).output().expect("the program starts")
}

/// `plimsoll run` with this plan against this service, which must carry it out: its JSON document. On a busy machine a
/// run may be void by its own rules (late timers); then it is measured again, as its advice says, and this is said.
pub(crate) fn measure(service: &Serving, plan: &str) -> Value {
    until_valid(|| measure_once(service, plan)).0
}

/// The same against a service that was just started, each time, with the report.
pub(crate) fn measure_cold(parameters: &Parameters, plan: &str) -> (Value, Report) {
    until_valid(|| measure_once(&Serving::service(parameters), plan))
}

fn until_valid(measure: impl Fn() -> (Value, Report)) -> (Value, Report) {
    let mut measured = measure();
    for _ in 1..TRIES {
        if measured.0["valid"] == true {
            break;
        }
        eprintln!("measured again: {}", measured.0["sentence"]);
        measured = measure();
    }
    measured
}

/// How often a run that is void is measured.
const TRIES: usize = 3;

fn measure_once(service: &Serving, plan: &str) -> (Value, Report) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("plimsoll.toml"), plan).expect("the plan is written");
    let args = ["run".to_owned(), "--json".to_owned(), format!("--url={}", service.address)];
    let files = [("plan", "plimsoll.toml"), ("output", "report.json")];
    let files = files.map(|(flag, name)| format!("--{flag}={}", path(name).display()));
    let output = plimsoll(args.into_iter().chain(files));
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("stdout is no JSON: {error}; it ended with {} and said\n{said}", output.status));
    assert_eq!(document["status"], "complete", "{document:#}\n{said}");
    let report = std::fs::read(path("report.json")).expect("the report is written");
    (document, Report::from_json(&report).expect("a report"))
}

/// A figure of a document, by its JSON pointer.
pub(crate) fn figure(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {document:#}"))
}

/// Whether `is` lies within the fraction `by` of `wanted`.
pub(crate) fn near(is: f64, wanted: f64, by: f64) -> bool {
    (is / wanted - 1.0).abs() <= by
}
