//! One worker's connection: a request out, a response in, both stamped. No pool, no retry, no redirect, no decoding.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_domain::outcome::ErrorKind;
use tokio::io::ReadBuf;

use super::clock::{Clock, MS, Nanos};
use super::deadline::Deadline;
use super::http::{BadResponse, Decoder, Limits};
use super::stream::{Endpoint, Stream, is_ours, open};
use super::worker::PAUSE;
use crate::protocol::Fault;

/// How exchanges are made on every connection of an engine.
#[derive(Debug, Clone)]
pub struct Transport {
    pub endpoint: Endpoint,
    /// From sending to the last byte.
    pub response_timeout: Duration,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    pub limits: Limits,
}

impl Transport {
    /// The longest that a worker takes until it looks up: it connects and waits as long as it may, then pauses.
    pub(super) fn longest_turn(&self) -> Nanos {
        let request = self.endpoint.connect_timeout.saturating_add(self.response_timeout);
        u64::try_from(request.as_nanos()).unwrap_or(Nanos::MAX).saturating_add(PAUSE)
    }
}

/// What all connections of one engine thread share.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) transport: Transport,
    pub(super) clock: Clock,
    preferred: Cell<usize>,
    /// One read buffer for the thread: it is never held across a wait.
    buffer: RefCell<Box<[u8]>>,
}

impl Wire {
    pub(super) fn new(transport: Transport, clock: Clock) -> Rc<Self> {
        let buffer = RefCell::new(vec![0; 64 << 10].into_boxed_slice());
        Rc::new(Self { transport, clock, preferred: Cell::new(0), buffer })
    }
}

/// How one request went.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) first_byte: Option<Nanos>,
    /// The last byte, or the failure.
    pub(super) end: Nanos,
    pub(super) opened: bool,
    /// No connection could be opened: the worker pauses.
    pub(super) unconnected: bool,
    pub(super) result: Result<(), Fault>,
}

#[derive(Debug)]
pub(super) struct Connection {
    wire: Rc<Wire>,
    stream: Option<Stream>,
    decoder: Decoder,
    deadline: Deadline,
    last_used: Nanos,
}

/// A connection that rested longer than this is looked at with the reactor's newest word before it is used.
const FRESH: Nanos = MS;

impl Connection {
    pub(super) fn new(wire: Rc<Wire>) -> Self {
        let decoder = Decoder::new(wire.transport.limits);
        Self { wire, stream: None, decoder, deadline: Deadline::default(), last_used: 0 }
    }

    /// The status of the last complete response.
    pub(super) fn status(&self) -> u16 {
        self.decoder.status()
    }

    /// The body of the last complete response, as far as it was kept.
    pub(super) fn body(&self) -> &[u8] {
        self.decoder.body()
    }

    /// Drops a connection that the peer has closed while it was idle: that is keep-alive's ordinary end, not an error.
    pub(super) async fn refresh(&mut self) {
        if self.stream.is_none() {
            return;
        }
        if self.wire.clock.now() - self.last_used > FRESH {
            // Lets the reactor look at its sockets before this task goes on.
            tokio::task::yield_now().await;
        }
        let Some(stream) = &mut self.stream else { return };
        let usable = poll_fn(|cx| {
            let mut byte = [0; 1];
            // Bytes that nobody asked for make it as useless as its end does.
            Poll::Ready(stream.poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending())
        });
        if !usable.await {
            self.stream = None;
        }
    }

    /// Sends `request`, on a new connection if there is none, and reads the whole response.
    pub(super) async fn exchange(&mut self, request: &[u8], answers_head: bool, issued: Nanos) -> Exchange {
        let clock = self.wire.clock;
        let mut exchange =
            Exchange { first_byte: None, end: issued, opened: false, unconnected: false, result: Ok(()) };
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => match open(&self.wire.transport.endpoint, &self.wire.preferred).await {
                Ok(stream) => {
                    exchange.opened = true;
                    stream
                }
                Err(fault) => {
                    let end = clock.now();
                    return Exchange { end, unconnected: true, result: Err(fault), ..exchange };
                }
            },
        };
        let sending = if exchange.opened { clock.now() } else { issued };
        let timeout = self.wire.transport.response_timeout;
        self.deadline.set((clock.instant(sending) + timeout).into());
        self.decoder.begin(answers_head);
        let mut transfer = Transfer { request, flushed: false, broken: None, first_byte: None };
        let (end, result) = poll_fn(|cx| {
            let done = transfer.poll(&mut stream, &mut self.decoder, &self.wire, cx);
            if done.is_pending() && self.deadline.poll(cx).is_ready() {
                let reason = format!("no complete answer within {} ms", timeout.as_millis());
                return Poll::Ready((clock.now(), Err(Fault::new(ErrorKind::ResponseTimeout, reason))));
            }
            done
        })
        .await;
        self.last_used = end;
        if result.is_ok() && self.wire.transport.keep_alive && self.decoder.keeps_alive() && transfer.flushed {
            self.stream = Some(stream);
        }
        Exchange { first_byte: transfer.first_byte, end, result, ..exchange }
    }
}

/// A request on its way out and its response on the way in.
struct Transfer<'a> {
    /// What is still to be written.
    request: &'a [u8],
    flushed: bool,
    /// Why writing ended early. An answer may still be there to read: some services refuse a body half-way.
    broken: Option<std::io::Error>,
    first_byte: Option<Nanos>,
}

impl Transfer<'_> {
    fn poll(
        &mut self,
        stream: &mut Stream,
        decoder: &mut Decoder,
        wire: &Wire,
        cx: &mut Context<'_>,
    ) -> Poll<(Nanos, Result<(), Fault>)> {
        if !self.flushed && self.broken.is_none() {
            self.write(stream, cx);
        }
        let mut buffer = wire.buffer.borrow_mut();
        loop {
            let mut read = ReadBuf::new(&mut buffer);
            let arrived = match stream.poll_read(cx, &mut read) {
                Poll::Pending => break,
                Poll::Ready(arrived) => arrived,
            };
            // Stamped before anything is parsed.
            let at = wire.clock.now();
            let done = match arrived {
                Err(error) => Err(broken(&error)),
                Ok(()) if read.filled().is_empty() => decoder.close().map(|()| true).map_err(|bad| bad_fault(&bad)),
                Ok(()) => {
                    self.first_byte.get_or_insert(at);
                    decoder.push(read.filled()).map_err(|bad| bad_fault(&bad))
                }
            };
            match done {
                Ok(false) => {}
                Ok(true) => return Poll::Ready((at, Ok(()))),
                Err(fault) => return Poll::Ready((at, Err(fault))),
            }
        }
        match &self.broken {
            Some(error) => Poll::Ready((wire.clock.now(), Err(broken(error)))),
            None => Poll::Pending,
        }
    }

    /// Writes what it can: usually the whole request with one call.
    fn write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) {
        while !self.request.is_empty() {
            match stream.poll_write(cx, self.request) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => {
                    self.broken = Some(std::io::ErrorKind::WriteZero.into());
                    return;
                }
                Poll::Ready(Ok(written)) => self.request = &self.request[written..],
                Poll::Ready(Err(error)) => {
                    self.broken = Some(error);
                    return;
                }
            }
        }
        match stream.poll_flush(cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.flushed = true,
            Poll::Ready(Err(error)) => self.broken = Some(error),
        }
    }
}

fn broken(error: &std::io::Error) -> Fault {
    let kind = if is_ours(error) { ErrorKind::ClientResource } else { ErrorKind::Reset };
    Fault::new(kind, format!("the connection broke: {error}"))
}

fn bad_fault(bad: &BadResponse) -> Fault {
    let kind = if matches!(bad, BadResponse::LongBody(_)) { ErrorKind::BadOutput } else { ErrorKind::Reset };
    Fault::new(kind, bad.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step with fewer workers that starts beside open requests has more workers than it says.
    #[test]
    fn a_turn_lasts_as_long_as_the_slowest_request() {
        let endpoint = Endpoint { addresses: Vec::new(), tls: None, connect_timeout: Duration::from_secs(3) };
        let transport = Transport {
            endpoint,
            response_timeout: Duration::from_secs(60),
            keep_alive: true,
            limits: Limits { body: 1, keep: 0 },
        };
        assert_eq!(transport.longest_turn(), 63_100 * MS);
        assert_eq!(Transport { response_timeout: Duration::MAX, ..transport }.longest_turn(), Nanos::MAX);
    }
}
