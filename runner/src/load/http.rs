//! Reading one HTTP/1.1 response from bytes, whatever the network's cuts (RFC 9112).
//!
//! Pure: bytes go in, the end of the response comes out. Nothing is decompressed and no redirect is followed.

use super::framing::{Framing, Transfer};

/// What a response may take; more is a broken answer, never memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest body in bytes.
    pub body: u64,
    /// Body bytes that are kept for judging; the rest is counted and dropped.
    pub keep: usize,
}

/// Longest head, interim heads and trailers in bytes.
pub const MAX_HEAD: usize = 64 << 10;
/// Most header fields.
pub const MAX_HEADERS: usize = 128;
/// Longest chunk-size line, with extensions.
const MAX_CHUNK_LINE: usize = 4 << 10;

/// Why bytes are not the response they should be. Each is a phrase for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    #[error("the answer is not HTTP/1: {0}")]
    Head(String),
    #[error("the answer's head is longer than {MAX_HEAD} bytes")]
    LongHead,
    #[error("the answer has contradicting or malformed content-length headers")]
    Length,
    #[error("the answer's chunked encoding is broken: {0}")]
    Chunk(&'static str),
    #[error("the answer's body is longer than {0} bytes")]
    LongBody(u64),
    #[error("the connection closed before an answer began")]
    Closed,
    #[error("the connection closed inside the answer's head")]
    ClosedInHead,
    #[error("the connection closed after {got} bytes of the answer's body{}", .of.map(|n| format!(" of {n}")).unwrap_or_default())]
    ClosedInBody { got: u64, of: Option<u64> },
}

/// A decoder for one response after the other on one connection; its buffers are reused.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    head: Vec<u8>,
    body: Vec<u8>,
    body_len: u64,
    trailers: usize,
    status: u16,
    keep_alive: bool,
    answers_head: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Fixed { left: u64 },
    UntilClose,
    ChunkSize,
    ChunkData { left: u64 },
    ChunkEnd,
    Trailers,
    Done,
}

impl Decoder {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            head: Vec::new(),
            body: Vec::new(),
            body_len: 0,
            trailers: 0,
            status: 0,
            keep_alive: false,
            answers_head: false,
        }
    }

    /// Makes ready for the next response. The answer to a `HEAD` request has no body, whatever its headers say.
    pub fn begin(&mut self, answers_head: bool) {
        self.state = State::Head;
        self.head.clear();
        self.body.clear();
        // One large body must not stay in memory for each worker for ever.
        self.body.shrink_to(1 << 20);
        self.body_len = 0;
        self.trailers = 0;
        self.keep_alive = false;
        self.answers_head = answers_head;
    }

    /// Takes the bytes that just arrived; true when the response is complete. Bytes past its end make the connection
    /// unusable for another request.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<bool, BadResponse> {
        while !bytes.is_empty() {
            if self.state == State::Done {
                self.keep_alive = false;
                return Ok(true);
            }
            let used = match self.state {
                State::Head => self.push_head(bytes)?,
                State::Fixed { left } => {
                    let now = take(bytes, left);
                    self.keep(now)?;
                    let left = left - now.len() as u64;
                    self.state = if left == 0 { State::Done } else { State::Fixed { left } };
                    now.len()
                }
                State::UntilClose => {
                    self.keep(bytes)?;
                    bytes.len()
                }
                State::ChunkData { left } => {
                    let now = take(bytes, left);
                    self.keep(now)?;
                    let left = left - now.len() as u64;
                    self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData { left } };
                    now.len()
                }
                State::ChunkSize | State::ChunkEnd | State::Trailers => self.push_line(bytes)?,
                State::Done => 0,
            };
            bytes = &bytes[used..];
        }
        Ok(self.state == State::Done)
    }

    /// The peer closed: the end of a body that has no other end, else an error.
    pub fn close(&mut self) -> Result<(), BadResponse> {
        self.keep_alive = false;
        let got = self.body_len;
        match self.state {
            State::Done => Ok(()),
            State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            State::Head if self.head.is_empty() => Err(BadResponse::Closed),
            State::Head => Err(BadResponse::ClosedInHead),
            State::Fixed { left } => Err(BadResponse::ClosedInBody { got, of: Some(got + left) }),
            _ => Err(BadResponse::ClosedInBody { got, of: None }),
        }
    }

    /// Of a complete response.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body, or its beginning where it is longer than the limits keep.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the connection may carry another request.
    pub fn keeps_alive(&self) -> bool {
        self.state == State::Done && self.keep_alive
    }

    fn push_head(&mut self, bytes: &[u8]) -> Result<usize, BadResponse> {
        // The usual case, a whole head in one read, is parsed in place.
        if self.head.is_empty()
            && let Some(end) = head_end(bytes, 0)
        {
            self.parse_head(&bytes[..end])?;
            return Ok(end);
        }
        let before = self.head.len();
        let taken = &bytes[..bytes.len().min(MAX_HEAD - before)];
        self.head.extend_from_slice(taken);
        let Some(end) = head_end(&self.head, before.saturating_sub(3)) else {
            return if self.head.len() < MAX_HEAD { Ok(taken.len()) } else { Err(BadResponse::LongHead) };
        };
        let head = std::mem::take(&mut self.head);
        self.parse_head(&head[..end])?;
        self.head = head;
        self.head.clear();
        Ok(end - before)
    }

    /// Sets the state after a complete head; an interim response is dropped and the next head awaited.
    fn parse_head(&mut self, head: &[u8]) -> Result<(), BadResponse> {
        if head.len() > MAX_HEAD {
            return Err(BadResponse::LongHead);
        }
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(BadResponse::Head("the head ends early".to_owned())),
            Err(e) => return Err(BadResponse::Head(e.to_string())),
        }
        let status = parsed.code.unwrap_or(0);
        if status == 101 {
            return Err(BadResponse::Head("101 Switching Protocols without having asked".to_owned()));
        }
        if (100..200).contains(&status) {
            return Ok(());
        }
        let framing = Framing::of(parsed.headers)?;
        self.status = status;
        self.keep_alive = match parsed.version {
            Some(1) => !framing.close,
            _ => framing.keep_alive && !framing.close,
        };
        let no_body = self.answers_head || status == 204 || status == 304;
        self.state = match (no_body, framing.transfer, framing.length) {
            (true, ..) | (false, Transfer::None, Some(0)) => State::Done,
            (false, Transfer::Chunked, length) => {
                // Both at once smells of request smuggling: read it, and trust the connection no further.
                self.keep_alive &= length.is_none() && parsed.version == Some(1);
                State::ChunkSize
            }
            (false, Transfer::None, Some(left)) if left > self.limits.body => {
                return Err(BadResponse::LongBody(self.limits.body));
            }
            (false, Transfer::None, Some(left)) => State::Fixed { left },
            (false, Transfer::Other, _) | (false, Transfer::None, None) => {
                self.keep_alive = false;
                State::UntilClose
            }
        };
        Ok(())
    }

    /// Lines of the chunked encoding. Returns how many bytes it took.
    fn push_line(&mut self, bytes: &[u8]) -> Result<usize, BadResponse> {
        let limit = if self.state == State::Trailers { MAX_HEAD } else { MAX_CHUNK_LINE };
        let newline = bytes.iter().position(|b| *b == b'\n');
        let used = newline.map_or(bytes.len(), |at| at + 1);
        if self.head.len() + used > limit {
            return Err(BadResponse::Chunk("a line is too long"));
        }
        self.head.extend_from_slice(&bytes[..used]);
        if newline.is_none() {
            return Ok(used);
        }
        let line = std::mem::take(&mut self.head);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match self.state {
            State::ChunkSize => {
                let left = chunk_size(text)?;
                if left > self.limits.body - self.body_len.min(self.limits.body) {
                    return Err(BadResponse::LongBody(self.limits.body));
                }
                self.state = if left == 0 { State::Trailers } else { State::ChunkData { left } };
            }
            State::ChunkEnd if text.is_empty() => self.state = State::ChunkSize,
            State::ChunkEnd => return Err(BadResponse::Chunk("a chunk is longer than its size")),
            State::Trailers if text.is_empty() => self.state = State::Done,
            State::Trailers => {
                self.trailers += line.len();
                if self.trailers > MAX_HEAD {
                    return Err(BadResponse::Chunk("the trailers are too long"));
                }
            }
            _ => {}
        }
        self.head = line;
        self.head.clear();
        Ok(used)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), BadResponse> {
        self.body_len += bytes.len() as u64;
        if self.body_len > self.limits.body {
            return Err(BadResponse::LongBody(self.limits.body));
        }
        let room = self.limits.keep.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }
}

/// Just past the empty line that ends a head, searching from `from`. Bare line feeds are taken too.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let newline = at + bytes.get(at..)?.iter().position(|b| *b == b'\n')?;
        match &bytes[newline + 1..] {
            [b'\n', ..] => return Some(newline + 2),
            [b'\r', b'\n', ..] => return Some(newline + 3),
            _ => at = newline + 1,
        }
    }
}

fn take(bytes: &[u8], left: u64) -> &[u8] {
    &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
}

fn chunk_size(line: &[u8]) -> Result<u64, BadResponse> {
    let size = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    if size.is_empty() || size.len() > 16 || !size.iter().all(u8::is_ascii_hexdigit) {
        return Err(BadResponse::Chunk("a chunk size is not a hexadecimal number"));
    }
    let text = std::str::from_utf8(size).unwrap_or_default();
    u64::from_str_radix(text, 16).map_err(|_| BadResponse::Chunk("a chunk size is too large"))
}
