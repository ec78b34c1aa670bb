//! A TCP or TLS connection to the service: opening it, and what can go wrong meanwhile.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_domain::outcome::ErrorKind;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::protocol::Fault;

/// Where and how connections are opened.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Resolved once per run; tried in this order, starting from the one that worked last.
    pub addresses: Vec<SocketAddr>,
    pub tls: Option<Tls>,
    /// For the connection and its TLS handshake together, at all addresses: each gets its share of what is left.
    pub connect_timeout: Duration,
}

#[derive(Debug, Clone)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
}

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Opens a connection. `preferred` is the index of the address that worked last.
pub(super) async fn open(endpoint: &Endpoint, preferred: &Cell<usize>) -> Result<Stream, Fault> {
    let connected = Cell::new(false);
    match tokio::time::timeout(endpoint.connect_timeout, open_any(endpoint, preferred, &connected)).await {
        Ok(result) => result,
        Err(_) => {
            let what = if connected.get() { "TLS handshake" } else { "connection" };
            let within = endpoint.connect_timeout.as_millis();
            Err(Fault::new(ErrorKind::ConnectTimeout, format!("no {what} within {within} ms")))
        }
    }
}

async fn open_any(endpoint: &Endpoint, preferred: &Cell<usize>, connected: &Cell<bool>) -> Result<Stream, Fault> {
    let count = endpoint.addresses.len();
    let first = preferred.get();
    let deadline = Instant::now() + endpoint.connect_timeout;
    let mut last = Fault::new(ErrorKind::Dns, "the name has no address");
    for offset in 0..count {
        let index = (first + offset) % count;
        let address = endpoint.addresses[index];
        // An address that swallows everything leaves time for those after it.
        let share = deadline.saturating_duration_since(Instant::now()) / u32::try_from(count - offset).unwrap_or(1);
        let connecting = TcpStream::connect(address);
        let Ok(connection) = tokio::time::timeout(share, connecting).await else {
            let within = endpoint.connect_timeout.as_millis();
            last = Fault::new(ErrorKind::ConnectTimeout, format!("no connection within {within} ms"));
            continue;
        };
        match connection {
            Ok(stream) => {
                preferred.set(index);
                connected.set(true);
                // Without it a request in two segments waits for a delayed acknowledgement.
                let _ = stream.set_nodelay(true);
                return handshake(endpoint.tls.as_ref(), stream).await;
            }
            Err(error) => last = connect_fault(address, &error),
        }
    }
    Err(last)
}

async fn handshake(tls: Option<&Tls>, stream: TcpStream) -> Result<Stream, Fault> {
    let Some(tls) = tls else { return Ok(Stream::Plain(stream)) };
    match TlsConnector::from(tls.config.clone()).connect(tls.name.clone(), stream).await {
        Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
        Err(error) => Err(Fault::new(ErrorKind::Tls, format!("the TLS handshake failed: {error}"))),
    }
}

fn connect_fault(address: SocketAddr, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        _ if is_ours(error) => ErrorKind::ClientResource,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => ErrorKind::Reset,
        // Refused by the host, or by the network on its way (no route, filtered).
        _ => ErrorKind::ConnectRefused,
    };
    Fault::new(kind, format!("cannot connect to {address}: {error}"))
}

/// No socket, port, file handle or memory left on this machine.
pub(super) fn is_ours(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL, Errno::ADDRINUSE];
    error.raw_os_error().is_some_and(|code| codes.iter().any(|errno| errno.raw_os_error() == code))
}

impl Stream {
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // TCP has nothing to flush.
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}
