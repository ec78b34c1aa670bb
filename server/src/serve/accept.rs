//! The accept loop: how long a client may take to say what it wants, and how many may be there at the same time.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;
use tower_http::timeout::TimeoutBody;

use super::front::Front;

/// A request's head has arrived by then; so an idle connection is closed after this time too.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The next part of a body has arrived by then; the whole request has a deadline of its own.
const PART_WITHIN: Duration = Duration::from_secs(10);
/// A client that takes none of what is sent for this long is gone.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// Requests at the same time on one connection of HTTP/2.
const MAX_STREAMS: u32 = 100;
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// After an `accept` that failed, when there are no files left for example.
const PAUSE: Duration = Duration::from_millis(200);
/// How a client of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Connections that the kernel holds until they are accepted, or fewer where it says so. One more is not told: it tries
/// again after a second, of which GitHub's deliveries, which come in bursts, have ten.
const BACKLOG: u32 = 1_024;

/// Listens, with room for more at once than tokio would leave.
pub(super) fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As tokio does: the port of a server that has just ended can be had at once.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// Serves until `end` resolves, then lets the requests under way finish. Dropping the future cuts them off.
pub(super) async fn serve(listener: TcpListener, front: Front, connections: NonZeroUsize, end: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(connections.get()));
    let graceful = GracefulShutdown::new();
    let builder = Arc::new(builder());
    let mut open = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut end => break,
            Some(_) = open.join_next() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let (builder, front, watcher) = (Arc::clone(&builder), front.clone(), graceful.watcher());
                open.spawn(async move {
                    connection(stream, peer, &builder, front, watcher).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    // Also those that have said nothing yet: they are watched from their first moment.
    graceful.shutdown().await;
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

/// Waits for a place first: who comes then waits in the kernel's queue, at no cost of ours.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    builder: &Builder<TokioExecutor>,
    front: Front,
    watcher: Watcher,
) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ =
        rustix::net::sockopt::set_tcp_user_timeout(&stream, TAKEN_WITHIN.as_millis().try_into().unwrap_or(u32::MAX));
    if !matches!(timeout(HEAD_WITHIN, begins(&stream)).await, Ok(Ok(true))) {
        return;
    }
    let service = service_fn(move |request: axum::http::Request<Incoming>| {
        let app = front.router();
        let mut request = request.map(|body| Body::new(TimeoutBody::new(PART_WITHIN, body)));
        request.extensions_mut().insert(ConnectInfo(peer));
        async move { Ok::<_, Infallible>(app.oneshot(request).await.unwrap_or_else(|never| match never {})) }
    });
    let served = watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await;
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_WITHIN)
        .keep_alive_timeout(HEAD_WITHIN)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32);
    builder
}

/// Waits until it can be told which HTTP this is; false when nothing comes any more. The library that tells has no
/// deadline of its own for it.
async fn begins(stream: &TcpStream) -> io::Result<bool> {
    let mut start = [0; PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        if length == 0 {
            return Ok(false);
        }
        if length == PREFACE.len() || !PREFACE.starts_with(&start[..length]) {
            return Ok(true);
        }
        // What is there stays readable: only time tells of more.
        sleep(Duration::from_millis(10)).await;
    }
}
