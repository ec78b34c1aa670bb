//! Tokens: 256 random bits, shown once, known to the server by their SHA-256 only.

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::hex::hex;

/// A shorter token could be guessed, and is refused at start.
pub const MIN_TOKEN: usize = 16;

/// Tokens given by configuration, beside those in the database: they upload, and set no policy.
#[derive(Clone, Default)]
pub struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    pub fn new(tokens: &[SecretString]) -> Self {
        Self(tokens.iter().map(|token| hash(token.expose_secret())).collect())
    }

    /// Each hash is compared in full, and all of them are.
    pub(super) fn has(&self, given: &[u8; 32]) -> bool {
        self.0.iter().fold(0, |known, hash| known | hash.ct_eq(given).unwrap_u8()) == 1
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A new token for somebody: by its prefix a scanner for secrets knows it where it should not be.
pub(super) fn new_token() -> Result<String, getrandom::Error> {
    Ok(format!("plim_{}", random()?))
}

/// A new id or key, or the server's own token: 256 random bits as 64 hexadecimal digits.
pub fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}
