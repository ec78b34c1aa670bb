//! A large report in parts: one that is cut goes on where the server says.

use plimsoll_domain::report::MAX_BYTES;
use reqwest::{Method, header};
use serde::{Deserialize, Serialize};

use super::{Package, Server, ServerError, Tried, Uploaded, parse};

#[derive(Debug, Serialize)]
struct Begin {
    sha256: String,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Progress {
    received: u64,
}

/// The largest part.
const PART: usize = 1 << 20;
/// How often in a row a server may say another place without any part arriving.
const MOST_CORRECTIONS: u32 = 5;

impl Server {
    /// Sends what is missing, part by part. `None`: the server takes no parts.
    pub(super) async fn in_parts(&self, package: &Package) -> Result<Option<Uploaded>, Tried> {
        let path = format!("api/v1/uploads/{}", package.run_id());
        let url = self.url(&path)?;
        let whole = package.bytes().len() as u64;
        let begin = Begin { sha256: package.sha256(), bytes: whole };
        let begun = self.once(self.request(Method::PUT, url.clone()).json(&begin)).await;
        let mut received = match begun {
            Ok(answer) => place(package, &answer)?,
            Err(tried) if matches!(tried.status(), Some(404 | 405)) => return Ok(None),
            Err(tried) => return Err(tried),
        };
        let mut corrections = 0;
        loop {
            let finishing = received == whole;
            let request = if finishing {
                self.request(Method::POST, self.url(&format!("{path}/finish"))?)
            } else {
                let from = usize::try_from(received).unwrap_or(MAX_BYTES);
                let part = package.bytes()[from..package.bytes().len().min(from + PART)].to_vec();
                self.request(Method::PATCH, url.clone())
                    .header("upload-offset", received)
                    .header(header::CONTENT_TYPE, "application/octet-stream")
                    .body(part)
            };
            match self.once(request).await {
                Ok(answer) if finishing => return Ok(Some(parse(&answer)?)),
                Ok(answer) => {
                    let now = place(package, &answer)?;
                    corrections = if now > received { 0 } else { corrections + 1 };
                    received = now;
                }
                Err(tried) => {
                    received = elsewhere(package, received, tried)?;
                    corrections += 1;
                }
            }
            if corrections > MOST_CORRECTIONS {
                return Err(Tried::unreachable("the server takes no part of the report where it asks for it"));
            }
        }
    }
}

/// Where to go on when the server refuses a part, or the end.
fn elsewhere(package: &Package, received: u64, tried: Tried) -> Result<u64, Tried> {
    match tried.status() {
        Some(409) => match place(package, &tried.body) {
            Ok(now) if now != received => Ok(now),
            _ => Err(tried),
        },
        // It ended meanwhile, by its age or by another hand: the next try begins it anew.
        Some(404) => Err(Tried::unreachable(format!("the upload is gone: {}", tried.error.why()))),
        _ => Err(tried),
    }
}

/// How much the server says to have.
fn place(package: &Package, answer: &[u8]) -> Result<u64, ServerError> {
    let Progress { received } = parse(answer)?;
    let whole = package.bytes().len() as u64;
    if received > whole {
        return Err(ServerError::Strange(format!("it has {received} bytes of a report of {whole}")));
    }
    package.has_arrived(received);
    Ok(received)
}
