//! One JSON (or any other) answer for each request.

use plimsoll_domain::outcome::ErrorKind;
use plimsoll_domain::plan::Expect;

use super::expect::{check, excerpt};
use super::render::{BadRequest, render};
use super::{Fault, Target};
use crate::spec::Requests;

/// How much of an answer is kept for messages when nothing in it is asserted.
const EXCERPT: usize = 2 << 10;
/// A larger answer cannot be asserted on.
const MAX_PARSED: usize = 64 << 20;

/// Requests with fixed bodies; an answer is right by its status and by what lies at JSON pointers in its body.
#[derive(Debug)]
pub struct Json {
    rendered: Vec<Vec<u8>>,
    answers_head: bool,
    expect: Expect,
}

impl Json {
    pub fn new(requests: &Requests, keep_alive: bool, expect: Expect) -> Result<Self, BadRequest> {
        let rendered = render(requests, keep_alive)?;
        Ok(Self { rendered, answers_head: requests.method == "HEAD", expect })
    }
}

impl Target for Json {
    fn shapes(&self) -> u64 {
        self.rendered.len() as u64
    }

    fn request(&self, number: u64) -> &[u8] {
        &self.rendered[(number % self.shapes()) as usize]
    }

    fn answers_head(&self) -> bool {
        self.answers_head
    }

    fn wants_body(&self) -> usize {
        if self.expect.json.is_empty() { EXCERPT } else { MAX_PARSED }
    }

    fn judge(&self, _: u64, status: u16, body: &[u8]) -> Result<(), Fault> {
        if status != self.expect.status {
            let reason = format!("status {status} instead of {}; the body is {}", self.expect.status, excerpt(body));
            return Err(Fault::new(ErrorKind::of_status(status), reason));
        }
        if self.expect.json.is_empty() {
            return Ok(());
        }
        check(&self.expect.json, body).map_err(|reason| Fault::new(ErrorKind::BadOutput, reason))
    }
}
