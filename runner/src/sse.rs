//! Server-sent events, read from bytes by the rules of the HTML Living Standard (9.2.6), whatever the network's cuts.

use std::time::Duration;

/// Takes the bytes of one stream and gives its events.
#[derive(Debug)]
pub struct Reader {
    longest: usize,
    /// Bytes of the line that is not over.
    line: Vec<u8>,
    /// The byte-order mark has been looked for.
    begun: bool,
    /// The last byte was a CR: an LF after it belongs to the same line end.
    after_cr: bool,
    event: String,
    data: String,
    has_data: bool,
    last_id: String,
    retry: Option<Duration>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `message` unless the stream says otherwise.
    pub name: String,
    pub data: String,
    /// The last id that the stream told, with this event or before.
    pub id: String,
}

/// A line or an event that is longer than the reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub struct TooLong(pub usize);

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl Reader {
    /// A reader of events of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            line: Vec::new(),
            begun: false,
            after_cr: false,
            event: String::new(),
            data: String::new(),
            has_data: false,
            last_id: String::new(),
            retry: None,
        }
    }

    /// What the client sends as `Last-Event-ID` when it comes back.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// How long the server wants it to wait until then.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next bytes and gives the events that they complete. What is incomplete when the stream ends is no event.
    ///
    /// # Errors
    /// A line or an event is too long; the stream cannot be read on.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let continues_cr = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            match byte {
                _ if continues_cr => {}
                b'\r' | b'\n' => events.extend(self.end_line()?),
                _ => {
                    self.line.push(byte);
                    self.bound()?;
                    if !self.begun && self.line.len() == MARK.len() {
                        self.begun = true;
                        if self.line == MARK {
                            self.line.clear();
                        }
                    }
                }
            }
        }
        Ok(events)
    }

    fn bound(&self) -> Result<(), TooLong> {
        let all = self.line.len() + self.data.len() + self.event.len();
        if all > self.longest { Err(TooLong(self.longest)) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Result<Option<Event>, TooLong> {
        self.begun = true;
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return Ok(None),
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.event = value.into_owned(),
            b"data" => {
                self.data.push_str(&value);
                self.data.push('\n');
                self.has_data = true;
            }
            b"id" if !value.contains('\0') => self.last_id = value.into_owned(),
            b"retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        self.bound()?;
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        data.pop();
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(Event { name, data, id: self.last_id.clone() })
    }
}

#[cfg(test)]
mod tests;
