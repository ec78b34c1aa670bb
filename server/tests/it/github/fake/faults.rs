//! What may go wrong with a request.

use std::time::Duration;

use super::route::Reply;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is done, and the answer to it is a 502.
    Lost,
    /// It is not done: a 502.
    Broken,
    /// It is done after this time.
    Late(Duration),
    /// No answer ever comes, and it is not done.
    Silent,
    /// A permission is missing.
    Forbidden,
    /// 404, whatever there is.
    Missing,
    /// 422: a text is too long.
    TooLong,
    /// 403: the account does not pay for this.
    Unpaid,
    /// A secondary limit, and for how long, in seconds.
    Limited(u64),
    /// The token is refused.
    Unauthorized,
    /// An answer without an end.
    Endless,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Planned>);

#[derive(Debug)]
struct Planned {
    on: String,
    fault: Fault,
    left: usize,
}

impl Faults {
    pub(super) fn add(&mut self, on: &str, fault: Fault, times: usize) {
        self.0.push(Planned { on: on.to_owned(), fault, left: times });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The one that this request meets with.
    pub(super) fn take(&mut self, method: &str, path: &str) -> Option<Fault> {
        let planned = self.0.iter_mut().find(|planned| planned.left > 0 && fits(&planned.on, method, path))?;
        planned.left -= 1;
        Some(planned.fault)
    }
}

/// `POST /check-runs`, `POST`, `/check-runs` or nothing.
pub(super) fn fits(on: &str, method: &str, path: &str) -> bool {
    on.split_whitespace().all(|word| match word.starts_with('/') {
        true => path.contains(word),
        false => method == word,
    })
}

impl Fault {
    /// The answer instead of the right one, for those that have one. `Lost` is answered after the request is done.
    pub(super) fn reply(self) -> Option<Reply> {
        match self {
            Self::Broken | Self::Lost => Some(Reply::text(502, "<html>502 Bad Gateway</html>")),
            Self::Forbidden => Some(Reply::told(403, "Resource not accessible by integration")),
            Self::Missing => Some(Reply::missing()),
            Self::TooLong => Some(Reply::told(422, "Body is too long (maximum is 65536 characters)")),
            Self::Unpaid => Some(Reply::told(403, "Upgrade to GitHub Pro or make this repository public.")),
            Self::Limited(seconds) => {
                let reply = Reply::told(403, "You have exceeded a secondary rate limit. Please wait a few minutes.");
                Some(reply.header("retry-after", seconds))
            }
            Self::Unauthorized => Some(Reply::told(401, "Bad credentials")),
            Self::Late(_) | Self::Silent | Self::Endless => None,
        }
    }
}
