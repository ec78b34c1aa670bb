//! A Plimsoll server on a socket: gives out jobs, hears heartbeats, takes reports.

use std::collections::VecDeque;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use plimsoll_domain::job::{Ended, Heartbeat};
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::verdict::judge;
use serde_json::{Value, json};

/// What the server does at the next claim.
#[derive(Debug, Clone)]
pub(crate) enum Claimed {
    Job(Value),
    /// These bytes as they are.
    Raw(String),
    /// These bytes, then more without end.
    Endless(String),
    /// These bytes, then nothing.
    Stall(String),
}

#[derive(Debug, Default)]
struct Inner {
    claims: VecDeque<Claimed>,
    asked: Vec<Value>,
    beats: Vec<Heartbeat>,
    /// The answer to the next heartbeats.
    beat: Option<(u16, Value)>,
    ended: Vec<Ended>,
    reports: Vec<Report>,
    pinned: Option<Value>,
    is_away: bool,
    /// The project that the token does not reach.
    forbids: Option<String>,
    /// The projects that the token reaches; `None`: a server that does not say.
    reach: Option<Value>,
    /// Refuses heartbeats with what it does not know, and counts them.
    is_old: bool,
    not_understood: usize,
    /// What is said to every request for a job.
    refuses: Option<(u16, Value)>,
    requests: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: String,
    inner: Arc<(Mutex<Inner>, Condvar)>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: format!("http://{}", listener.local_addr().unwrap()), inner: Arc::default() };
        let shared = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        server
    }

    pub(crate) fn give(&self, claimed: Claimed) {
        self.with(|inner| inner.claims.push_back(claimed));
    }

    /// Answers heartbeats so from now on.
    pub(crate) fn answer_beats(&self, status: u16, body: Value) {
        self.with(|inner| inner.beat = Some((status, body)));
    }

    pub(crate) fn pin(&self, pinned: Value) {
        self.with(|inner| inner.pinned = Some(pinned));
    }

    /// Answers everything but claims and heartbeats with 503.
    pub(crate) fn go_away(&self, is_away: bool) {
        self.with(|inner| inner.is_away = is_away);
    }

    /// Takes no report of this project.
    pub(crate) fn forbid(&self, project: Option<&str>) {
        self.with(|inner| inner.forbids = project.map(str::to_owned));
    }

    /// Gives no job to this token.
    pub(crate) fn refuse(&self, status: u16, body: Value) {
        self.with(|inner| inner.refuses = Some((status, body)));
    }

    /// Knows no draining from now on.
    pub(crate) fn be_old(&self) {
        self.with(|inner| inner.is_old = true);
    }

    pub(crate) fn not_understood(&self) -> usize {
        self.with(|inner| inner.not_understood)
    }

    /// Says so of the token's reach.
    pub(crate) fn reach(&self, reach: Value) {
        self.with(|inner| inner.reach = Some(reach));
    }

    pub(crate) fn beats(&self) -> Vec<Heartbeat> {
        self.with(|inner| inner.beats.clone())
    }

    pub(crate) fn ended(&self) -> Vec<Ended> {
        self.with(|inner| inner.ended.clone())
    }

    pub(crate) fn reports(&self) -> Vec<Report> {
        self.with(|inner| inner.reports.clone())
    }

    /// The claims so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.with(|inner| inner.asked.clone())
    }

    /// Request lines so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.with(|inner| inner.requests.clone())
    }

    /// The first ending that is heard.
    pub(crate) fn wait_for_end(&self) -> Ended {
        self.wait("the end of the job", |server| server.ended.first().cloned())
    }

    pub(crate) fn wait_for_report(&self) -> Report {
        self.wait("a report", |server| server.reports.first().cloned())
    }

    pub(crate) fn wait_for_stage(&self, stage: plimsoll_domain::job::Stage) {
        let seen = |beat: &Heartbeat| beat.progress.iter().any(|progress| progress.stage == stage);
        self.wait(stage.name(), |server| server.beats.iter().any(seen).then_some(()));
    }

    pub(crate) fn wait_for_beats(&self, count: usize) {
        self.wait("heartbeats", |server| (server.beats.len() >= count).then_some(()));
    }

    pub(crate) fn wait_for_claims(&self, count: usize) {
        self.wait("claims", |server| (server.asked.len() >= count).then_some(()));
    }

    fn wait<T>(&self, what: &str, found: impl Fn(&Inner) -> Option<T>) -> T {
        let until = Instant::now() + Duration::from_secs(90);
        let mut inner = self.inner.0.lock().unwrap();
        loop {
            if let Some(found) = found(&inner) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}: {:?}", inner.ended);
            inner = self.inner.1.wait_timeout(inner, left).unwrap().0;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.inner.0.lock().unwrap());
        self.inner.1.notify_all();
        changed
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let (line, body) = read_request(&mut reader)?;
            self.with(|inner| inner.requests.push(line.clone()));
            if line.contains("/agent/claim") {
                if let Some((status, body)) = self.with(|inner| inner.refuses.clone()) {
                    answer(&stream, status, &body)?;
                    continue;
                }
                if body.is_empty() {
                    answer(&stream, 400, &json!({ "title": "no claim" }))?;
                    continue;
                }
                self.with(|inner| inner.asked.push(serde_json::from_slice(&body).unwrap()));
                // A server waits a while for a job before it says that there is none.
                std::thread::sleep(Duration::from_millis(50));
                match self.with(|inner| inner.claims.pop_front()) {
                    None => (&stream).write_all(b"HTTP/1.1 204 X\r\n\r\n").ok()?,
                    Some(Claimed::Job(job)) => answer(&stream, 200, &job)?,
                    Some(Claimed::Raw(bytes)) => (&stream).write_all(bytes.as_bytes()).ok()?,
                    Some(Claimed::Endless(bytes)) => {
                        (&stream).write_all(bytes.as_bytes()).ok()?;
                        loop {
                            (&stream).write_all(&[b' '; 64 << 10]).ok()?;
                        }
                    }
                    Some(Claimed::Stall(bytes)) => {
                        (&stream).write_all(bytes.as_bytes()).ok()?;
                        // Until the agent has had enough.
                        return (&stream).read(&mut [0]).ok().map(drop);
                    }
                }
                continue;
            }
            if line.contains("/agent/reach") {
                match self.with(|inner| inner.reach.clone()) {
                    Some(reach) => answer(&stream, 200, &reach)?,
                    None => answer(&stream, 404, &json!({ "title": "Not Found" }))?,
                }
                continue;
            }
            if line.contains("/heartbeat") {
                let beat: Heartbeat = serde_json::from_slice(&body).unwrap();
                assert!(beat.progress.iter().all(plimsoll_domain::job::Progress::is_sound));
                if beat.draining && self.with(|inner| inner.is_old) {
                    self.with(|inner| inner.not_understood += 1);
                    answer(&stream, 422, &json!({ "title": "unknown field `draining`" }))?;
                    continue;
                }
                let said = self.with(|inner| {
                    inner.beats.push(beat);
                    inner.beat.clone()
                });
                let (status, body) = said.unwrap_or((200, json!({ "lease_s": 60 })));
                answer(&stream, status, &body)?;
                continue;
            }
            if self.with(|inner| inner.is_away) {
                answer(&stream, 503, &json!({ "title": "away" }))?;
            } else if line.contains("/end") {
                self.with(|inner| inner.ended.push(serde_json::from_slice(&body).unwrap()));
                answer(&stream, 200, &json!({}))?;
            } else if line.contains("/pinned-load") {
                match self.with(|inner| inner.pinned.clone()) {
                    Some(pinned) => answer(&stream, 200, &pinned)?,
                    None => answer(&stream, 404, &json!({ "title": "no pinned load" }))?,
                }
            } else if body.is_empty() {
                answer(&stream, 422, &json!({ "title": "no report" }))?;
            } else {
                let report = Report::from_json(&body).unwrap();
                if self.with(|inner| inner.forbids.as_deref() == Some(report.project.as_str())) {
                    answer(&stream, 403, &json!({ "title": "Forbidden" }))?;
                    continue;
                }
                let comparison = judge(None, &report, &Policy::default(), &Noise::default());
                let uploaded =
                    json!({ "run_id": report.run_id, "url": null, "comparison": comparison, "created": true });
                self.with(|inner| inner.reports.push(report));
                answer(&stream, 201, &uploaded)?;
            }
        }
    }
}

/// A text is the page of a proxy.
fn answer(mut stream: &TcpStream, status: u16, body: &Value) -> Option<()> {
    let (kind, body) = match body {
        Value::String(page) => ("text/html", page.clone()),
        json => ("application/json", json.to_string()),
    };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).ok()
}

/// The request line and the body, unpacked.
fn read_request(reader: &mut impl std::io::BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    assert!(head.contains("authorization: bearer t0ken"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if head.contains("content-encoding: zstd") {
        body = zstd::decode_all(&body[..]).ok()?;
    }
    Some((head.lines().next()?.to_owned(), body))
}
