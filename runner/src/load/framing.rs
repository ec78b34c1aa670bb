//! How long a body is and whether its connection goes on, by the headers (RFC 9112, 6.3 and 9.3).

use super::http::BadResponse;

/// What the headers say about the body and the connection.
pub(super) struct Framing {
    pub(super) length: Option<u64>,
    pub(super) transfer: Transfer,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    None,
    Chunked,
    /// Some other coding is last: the body ends with the connection.
    Other,
}

impl Framing {
    pub(super) fn of(headers: &[httparse::Header<'_>]) -> Result<Self, BadResponse> {
        let mut framing = Self { length: None, transfer: Transfer::None, close: false, keep_alive: false };
        for header in headers {
            let name = header.name;
            if name.eq_ignore_ascii_case("content-length") {
                for part in header.value.split(|b| *b == b',') {
                    let length = decimal(part.trim_ascii()).ok_or(BadResponse::Length)?;
                    if framing.length.is_some_and(|earlier| earlier != length) {
                        return Err(BadResponse::Length);
                    }
                    framing.length = Some(length);
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                let last = header.value.rsplit(|b| *b == b',').next().unwrap_or_default().trim_ascii();
                let chunked = last.eq_ignore_ascii_case(b"chunked");
                framing.transfer = if chunked { Transfer::Chunked } else { Transfer::Other };
            } else if name.eq_ignore_ascii_case("connection") {
                for token in header.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    framing.close |= token.eq_ignore_ascii_case(b"close");
                    framing.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
        }
        Ok(framing)
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
