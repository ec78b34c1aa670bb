//! Who asks: the App by a token that it signed itself, or an installation by one that it was given.

use std::time::{Duration, Instant};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde_json::json;

use super::model::{APP, Model, SLUG};
use super::route::{Handled, Reply};
use super::{WEBHOOK_SECRET, shape};

/// Made for these tests, and of no use elsewhere.
pub(crate) const KEY: &str = include_str!("key.pkcs8.pem");
/// The same in the other form.
pub(crate) const KEY_PKCS1: &str = include_str!("key.pkcs1.pem");
/// Of nobody.
pub(crate) const OTHER_KEY: &str = include_str!("other.pem");
const PUBLIC: &str = include_str!("key.public.pem");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    App,
    Installation(i64),
}

#[derive(Debug)]
pub(super) struct Issued {
    token: String,
    installation: i64,
    until: Instant,
}

#[derive(Deserialize)]
struct Claims {
    iss: i64,
    iat: i64,
    exp: i64,
}

/// Longest life that GitHub takes, in seconds.
const MAX_LIFE: i64 = 600;

pub(super) fn caller(model: &Model, authorization: Option<&str>) -> Result<Caller, Reply> {
    let bad = || Reply::told(401, "Bad credentials");
    let token = authorization.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(bad)?;
    if let Some(issued) = model.tokens.iter().find(|issued| issued.token == token) {
        return if issued.until > Instant::now() { Ok(Caller::Installation(issued.installation)) } else { Err(bad()) };
    }
    let key = DecodingKey::from_rsa_pem(PUBLIC.as_bytes()).expect("a key of ours");
    let mut validation = Validation::new(Algorithm::RS256);
    validation.leeway = 0;
    let undecoded = |_| Reply::told(401, "A JSON web token could not be decoded");
    let claims: Claims = decode(token, &key, &validation).map_err(undecoded)?.claims;
    let now = jiff::Timestamp::now().as_second();
    match claims {
        Claims { iat, .. } if iat > now => Err(Reply::told(401, "'Issued at' claim ('iat') must be in the past")),
        Claims { exp, .. } if exp - now > MAX_LIFE => {
            Err(Reply::told(401, "'Expiration time' claim ('exp') is too far in the future"))
        }
        Claims { iss, .. } if iss != APP => Err(Reply::told(401, "Integration not found")),
        _ => Ok(Caller::App),
    }
}

/// `POST /app/installations/ID/access_tokens`
pub(super) fn issue(model: &mut Model, installation: i64) -> Handled {
    let known = model.installations.get(&installation).ok_or_else(Reply::missing)?;
    if known.suspended {
        return Err(Reply::told(403, "This installation has been suspended"));
    }
    let token = format!("ghs_{}_{}", installation, model.next_id());
    let expires_at = jiff::Timestamp::now() + model.token_life;
    let until = Instant::now() + model.token_life;
    model.tokens.push(Issued { token: token.clone(), installation, until });
    let permissions = model.permissions.clone();
    let answer = json!({ "token": token, "expires_at": expires_at, "permissions": permissions,
        "repository_selection": "selected" });
    Ok(Reply::of(201, answer))
}

/// `POST /app-manifests/CODE/conversions`: what GitHub gives for a new App, once.
pub(super) fn convert(model: &mut Model, code: &str) -> Handled {
    let at = model.manifest_codes.iter().position(|known| known == code).ok_or_else(Reply::missing)?;
    model.manifest_codes.swap_remove(at);
    let mut app = shape::app(model);
    let given = [("client_id", "Iv1.1"), ("client_secret", "the secret of a client"), ("pem", KEY)];
    for (name, value) in given.into_iter().chain([("webhook_secret", WEBHOOK_SECRET)]) {
        app[name] = json!(value);
    }
    app["html_url"] = json!(format!("https://github.example/apps/{SLUG}"));
    Ok(Reply::of(201, app))
}

impl Model {
    /// Every token that was given out is refused from now on.
    pub(crate) fn forget_tokens(&mut self) {
        self.tokens.clear();
    }

    /// How long tokens last that are given out from now on.
    pub(crate) fn token_life(&mut self, life: Duration) {
        self.token_life = life;
    }
}
