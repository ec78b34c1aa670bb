//! Whether a delivery is GitHub's: HMAC-SHA256 over the raw bytes, by a secret that only the two know.

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

use crate::hex::from_hex;

/// Whether `X-Hub-Signature-256` has this value for this body. Compared in constant time.
pub fn is_valid(secret: &SecretString, body: &[u8], signature: &str) -> bool {
    let Some(signature) = signature.strip_prefix("sha256=").and_then(from_hex) else { return false };
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).expect("a key of any length is one");
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GitHub's own example.
    const DIGEST: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn githubs_own_example_is_valid_and_nothing_beside_it() {
        let secret = SecretString::from("It's a Secret to Everybody");
        let valid = |body: &[u8], signature: &str| is_valid(&secret, body, signature);
        assert!(valid(b"Hello, World!", &format!("sha256={DIGEST}")));
        assert!(valid(b"Hello, World!", &format!("sha256={}", DIGEST.to_uppercase())));
        assert!(!valid(b"Hello, World", &format!("sha256={DIGEST}")));
        assert!(!is_valid(&"another".into(), b"Hello, World!", &format!("sha256={DIGEST}")));
        for odd in ["", "sha256=", DIGEST, "sha256=7", "sha256=zz", "sha256=é", "sha1=757107ea", "SHA256=00"] {
            assert!(!valid(b"Hello, World!", odd), "{odd}");
        }
        assert!(!valid(b"Hello, World!", &format!("sha256={}", &DIGEST[..62])), "a part of it");
        assert!(!valid(b"Hello, World!", &format!("sha256={DIGEST}00")), "more than it");
    }
}
