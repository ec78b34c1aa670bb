//! A small real HTTP server for the tests, and plans for it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_domain::plan::*;
use plimsoll_domain::report::Report;
use plimsoll_runner::phases::{self, RunError};
use plimsoll_runner::spec::{Requests, RunSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How the server answers one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These bytes, and the connection stays open.
    Bytes(String),
    /// These bytes, then the end of the connection.
    Close(String),
    /// These bytes, then a reset.
    Reset(String),
    /// These bytes, then nothing more.
    Stall(String),
}

/// What the server knows when it answers.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The number of the request, from 0 over all connections.
    pub number: u64,
    /// Connections that are open.
    pub open: u64,
}

pub fn ok(body: &str) -> Reply {
    status(200, body)
}

pub fn status(status: u16, body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

/// A server on a thread of its own, counting what it sees. It ends with this value.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
    pub requests: Arc<AtomicU64>,
    /// Connections that the server has ended.
    pub closed: Arc<AtomicU64>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Server {
    /// Answers requests with what `reply` says, `pool` at a time, each taking `service`.
    pub fn start(pool: usize, service: Duration, reply: impl Fn(Seen) -> Reply + Send + Sync + 'static) -> Self {
        let (ready, started) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let [connections, requests, closed] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let counters = [connections.clone(), requests.clone(), closed.clone()];
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                let shared = Arc::new((Semaphore::new(pool), reply));
                let accept = async {
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        counters[0].fetch_add(1, Ordering::Relaxed);
                        let (shared, counters) = (shared.clone(), counters.clone());
                        tokio::spawn(async move {
                            let _ = serve(stream, &shared.0, service, &shared.1, &counters).await;
                            counters[2].fetch_add(1, Ordering::Relaxed);
                        });
                    }
                };
                tokio::select! {
                    () = accept => {}
                    _ = stopped => {}
                }
            });
        });
        let address = started.recv().unwrap();
        Self { address, connections, requests, closed, _stop: stop }
    }
}

async fn serve(
    mut stream: TcpStream,
    pool: &Semaphore,
    service: Duration,
    reply: &(impl Fn(Seen) -> Reply + Send + Sync),
    [connections, requests, closed]: &[Arc<AtomicU64>; 3],
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let Some(length) = request_length(&buffer) else {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        buffer.drain(..length);
        let number = requests.fetch_add(1, Ordering::Relaxed);
        {
            let _permit = pool.acquire().await.map_err(std::io::Error::other)?;
            if !service.is_zero() {
                tokio::time::sleep(service).await;
            }
        }
        let open = connections.load(Ordering::Relaxed) - closed.load(Ordering::Relaxed);
        match reply(Seen { number, open }) {
            Reply::Bytes(bytes) => stream.write_all(bytes.as_bytes()).await?,
            Reply::Close(bytes) => {
                stream.write_all(bytes.as_bytes()).await?;
                return stream.shutdown().await;
            }
            Reply::Reset(bytes) => {
                stream.write_all(bytes.as_bytes()).await?;
                stream.set_zero_linger()?;
                return Ok(());
            }
            Reply::Stall(bytes) => {
                stream.write_all(bytes.as_bytes()).await?;
                return std::future::pending().await;
            }
        }
    }
}

/// Length of the first complete request in `bytes`.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let head = text.find("\r\n\r\n")? + 4;
    let length = text[..head].lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    (bytes.len() >= head + length).then_some(head + length)
}

/// A quick plan for a service at `address`.
pub fn spec(address: SocketAddr) -> RunSpec {
    let body = br#"{"text":"hello"}"#.to_vec();
    let origin = format!("http://{address}");
    RunSpec {
        run_id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        project: "test".parse().unwrap(),
        revision: Default::default(),
        testbed: Default::default(),
        requests: Requests {
            url: format!("{origin}/predict").parse().unwrap(),
            method: "POST".to_owned(),
            headers: vec![],
            bodies: vec![body],
        },
        pinned: None,
        plan: Plan {
            profile: Profile::Standard,
            service: Service {
                origin,
                path: "/predict".to_owned(),
                method: "POST".to_owned(),
                headers: Default::default(),
                connect_timeout_ms: 1_000,
                response_timeout_ms: 2_000,
                keep_alive: true,
            },
            workload: Workload {
                requests: 1,
                sha256: "0".repeat(64),
                expect: Expect { status: 200, json: Default::default() },
            },
            phases: Phases {
                smoke: Smoke { duration_ms: 400 },
                warm_up: WarmUp { min_requests: 10, max_duration_ms: 1_000, top_ms: 200 },
                staircase: Staircase {
                    workers: vec![2, 4],
                    step_ms: 600,
                    ramp_up_ms: 100,
                    search: true,
                    search_step_ms: 600,
                    max_workers: 64,
                    max_error_rate: 0.01,
                },
                stability: Stability { duration_ms: 1_000, ramp_up_ms: 100, workers: None, knee_fraction: 0.75 },
            },
        },
    }
}

/// Carries out a run to its end and checks that its report is well-formed.
pub async fn run(spec: RunSpec) -> Result<Report, RunError> {
    let (_stop, stopped) = watch::channel(false);
    let report = phases::run(spec, &mut (), stopped).await?;
    report.check().unwrap();
    assert_eq!(Report::from_json(report.to_json().as_bytes()).unwrap(), report);
    Ok(report)
}
