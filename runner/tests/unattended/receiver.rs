//! A server that takes reports, whole or in parts, and whose connections break where a test says.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::verdict::judge;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// It ends with the test's process.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// How many bytes the next connections carry, both ways, until they break.
    pub cuts: VecDeque<usize>,
    /// Whether it knows nothing of parts.
    pub whole_only: bool,
    /// Whether of a part that broke off it keeps what arrived.
    pub keeps_pieces: bool,
    /// What it answers instead of taking a report.
    pub refuses: Option<(u16, Value)>,
    /// What a proxy before it answers first, in HTML and by these statuses.
    pub proxy: VecDeque<u16>,
    /// The run whose project the token does not reach.
    pub forbids: Option<String>,
    /// Request lines, in their order.
    pub seen: Vec<String>,
    /// Bytes of parts that arrived.
    pub carried: usize,
    /// Reports by run, unpacked, with how often each came to its end.
    pub stored: BTreeMap<String, (Vec<u8>, u32)>,
    pub uploads: BTreeMap<String, Upload>,
}

#[derive(Debug)]
pub(crate) struct Upload {
    sha256: String,
    bytes: usize,
    data: Vec<u8>,
}

impl Receiver {
    pub(crate) fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Self { address, state: Arc::new(Mutex::new(state)) };
        let shared = receiver.state.clone();
        let comparison = Arc::new(comparison());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, comparison) = (shared.clone(), comparison.clone());
                std::thread::spawn(move || {
                    let left = shared.lock().unwrap().cuts.pop_front().unwrap_or(usize::MAX);
                    // A connection that breaks ends here.
                    let _ = serve(Metered { stream, left }, &shared, &comparison);
                });
            }
        });
        receiver
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// How often a report came to its end.
    pub(crate) fn times(&self, run: &str) -> u32 {
        self.state().stored.get(run).map_or(0, |(_, times)| *times)
    }
}

fn comparison() -> Comparison {
    judge(None, &Synthetic::default().report(), &Policy::default(), &Noise::default())
}

/// A connection that carries so many bytes.
struct Metered {
    stream: TcpStream,
    left: usize,
}

impl io::Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.carries(buffer.len())?;
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

impl io::Write for Metered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.carries(bytes.len())?;
        let written = self.stream.write(&bytes[..most])?;
        self.left -= written;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Metered {
    fn carries(&self, wanted: usize) -> io::Result<usize> {
        let most = wanted.min(self.left);
        if most == 0 { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(most) }
    }
}

/// Answers one request, then closes.
fn serve(mut stream: Metered, state: &Mutex<State>, comparison: &Comparison) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let offset: usize = header("upload-offset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
    let line = head.lines().next().unwrap_or_default().to_owned();
    state.lock().unwrap().seen.push(line.clone());
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let run = path.strip_prefix("/api/v1/uploads/").map(|rest| rest.trim_end_matches("/finish").to_owned());

    let mut body = Vec::new();
    while body.len() < length {
        let mut piece = [0; 16 << 10];
        let most = piece.len().min(length - body.len());
        match stream.read(&mut piece[..most]) {
            Ok(read) if read > 0 => body.extend_from_slice(&piece[..read]),
            broken => {
                let mut state = state.lock().unwrap();
                if let (true, "patch", Some(run)) = (state.keeps_pieces, method, &run) {
                    state.add(run, offset, &body);
                }
                return broken.and(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
    let mut state = state.lock().unwrap();
    let (status, body) = match state.proxy.pop_front() {
        Some(status) => (status, "<html><body><h1>nginx</h1></body></html>".to_owned()),
        None => {
            let (status, json) = state.answer(method, run.as_deref(), offset, &body, comparison);
            (status, json.to_string())
        }
    };
    drop(state);
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes())
}

impl State {
    fn answer(
        &mut self,
        method: &str,
        run: Option<&str>,
        offset: usize,
        body: &[u8],
        comparison: &Comparison,
    ) -> (u16, Value) {
        let Some(run) = run else { return self.store(body, comparison) };
        match method {
            _ if self.whole_only => (404, json!({ "title": "Not found" })),
            "put" => {
                let begin: Value = serde_json::from_slice(body).unwrap();
                let sha256 = begin["sha256"].as_str().unwrap().to_owned();
                let bytes = usize::try_from(begin["bytes"].as_u64().unwrap()).unwrap();
                let new = |sha256| Upload { sha256, bytes, data: Vec::new() };
                let upload = self.uploads.entry(run.to_owned()).or_insert_with(|| new(sha256.clone()));
                if upload.sha256 != sha256 {
                    *upload = new(sha256);
                }
                (200, json!({ "received": upload.data.len() }))
            }
            "patch" => self.add(run, offset, body),
            _ => {
                let upload = &self.uploads[run];
                let sum: String = Sha256::digest(&upload.data).iter().map(|byte| format!("{byte:02x}")).collect();
                if upload.data.len() < upload.bytes {
                    return (409, json!({ "received": upload.data.len() }));
                }
                assert_eq!(sum, upload.sha256, "what arrived is what was sent");
                let data = upload.data.clone();
                self.store(&data, comparison)
            }
        }
    }

    fn add(&mut self, run: &str, offset: usize, body: &[u8]) -> (u16, Value) {
        assert!(body.len() <= 1 << 20, "a part of {} bytes", body.len());
        let Some(upload) = self.uploads.get_mut(run) else { return (404, json!({ "title": "No upload" })) };
        let fits = offset == upload.data.len() && offset + body.len() <= upload.bytes;
        if fits {
            upload.data.extend_from_slice(body);
            self.carried += body.len();
        }
        (if fits { 200 } else { 409 }, json!({ "received": upload.data.len() }))
    }

    fn store(&mut self, packed: &[u8], comparison: &Comparison) -> (u16, Value) {
        if let Some((status, problem)) = &self.refuses {
            return (*status, problem.clone());
        }
        let plain = zstd::decode_all(packed).unwrap();
        let run = Report::from_json(&plain).unwrap().run_id.to_string();
        if self.forbids.as_ref() == Some(&run) {
            return (403, json!({ "title": "Forbidden" }));
        }
        let (stored, times) = self.stored.entry(run.clone()).or_insert_with(|| (plain.clone(), 0));
        if *stored != plain {
            return (409, json!({ "title": "Another report", "detail": "of the same run is stored" }));
        }
        *times += 1;
        let created = *times == 1;
        (200, json!({ "run_id": run, "url": null, "comparison": comparison, "created": created }))
    }
}
