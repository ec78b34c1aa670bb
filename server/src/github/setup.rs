//! Registering an App of one's own: who may (a code that is shown on the server's console only), and that it is the same
//! browser which comes back.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use subtle::ConstantTimeEq as _;

use super::AppFile;
use crate::access::{hash, random};

/// Open as long as the server has no App, and for an hour.
pub struct Setup {
    /// Where the App will lie.
    data_dir: PathBuf,
    code: Secret,
    /// Of those who were sent to GitHub, the last: what they bring back, once.
    trip: Mutex<Option<Secret>>,
}

/// As a hash: what is compared takes as long whatever is given.
struct Secret {
    hash: [u8; 32],
    until: Instant,
}

const LASTS: Duration = Duration::from_secs(3_600);
/// Hexadecimal digits: 80 bits.
const CODE: usize = 20;

impl Setup {
    /// With the code, which is kept by nobody else.
    pub fn new(data_dir: &Path) -> Result<(Self, SecretString), getrandom::Error> {
        let digits = &random()?[..CODE];
        let groups: Vec<&str> = (0..CODE).step_by(5).map(|at| &digits[at..at + 5]).collect();
        let setup = Self { data_dir: data_dir.to_owned(), code: Secret::new(digits), trip: Mutex::new(None) };
        Ok((setup, SecretString::from(groups.join("-"))))
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// No other server on the data directory has registered one.
    pub fn is_open(&self) -> bool {
        self.code.holds() && !AppFile::exists(&self.data_dir)
    }

    /// What somebody takes along to GitHub. `None` for a wrong code.
    pub fn begin(&self, code: &str) -> Result<Option<String>, getrandom::Error> {
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        if !self.code.is(&code.to_ascii_lowercase()) {
            return Ok(None);
        }
        let state = random()?;
        *self.trip.lock().unwrap_or_else(PoisonError::into_inner) = Some(Secret::new(&state));
        Ok(Some(state))
    }

    /// Whether it is they who come back. Once.
    pub fn come_back(&self, state: &str) -> bool {
        let mut trip = self.trip.lock().unwrap_or_else(PoisonError::into_inner);
        trip.take_if(|trip| trip.is(state)).is_some()
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl Secret {
    fn new(text: &str) -> Self {
        Self { hash: hash(text), until: Instant::now() + LASTS }
    }

    fn holds(&self) -> bool {
        Instant::now() < self.until
    }

    fn is(&self, given: &str) -> bool {
        bool::from(self.hash.ct_eq(&hash(given))) && self.holds()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_code_begins_a_trip_that_ends_once() {
        let folder = tempfile::tempdir().unwrap();
        let (setup, code) = Setup::new(folder.path()).unwrap();
        let code = code.expose_secret();
        assert_eq!(code.len(), CODE + 3, "{code}");
        assert!(setup.is_open());
        for wrong in ["", "0", &code[1..], &format!("{code}0")] {
            assert_eq!(setup.begin(wrong).unwrap(), None, "{wrong}");
        }
        assert!(!setup.come_back(""), "nobody was sent");
        // As people copy it.
        let state = setup.begin(&format!(" {} ", code.to_uppercase().replace('-', " "))).unwrap().unwrap();
        assert!(!setup.come_back("another"));
        assert!(setup.come_back(&state), "another one's attempt is no harm");
        assert!(!setup.come_back(&state));
        assert!(!format!("{setup:?}").contains(&code[..5]));
    }

    #[test]
    fn what_is_over_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut setup, code) = Setup::new(folder.path()).unwrap();
        setup.code.until = Instant::now();
        assert!(!setup.is_open());
        assert_eq!(setup.begin(code.expose_secret()).unwrap(), None);
    }
}
