//! Addresses that open without signing in, because this server signed them: whoever has one may read what it names, and
//! can make no other out of it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretBox};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::hex::hex;
use crate::store::Pool;
use crate::store::secrets::{self, Secret};
use crate::tasks::{Error, Result};

/// For one purpose.
#[derive(Debug)]
pub struct SigningKey(SecretBox<[u8; 32]>);

impl SigningKey {
    /// The same on every server of the database. A key of one purpose signs nothing for another.
    pub(crate) async fn load(pool: &Pool, purpose: &str) -> Result<Self> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(Error::internal)?;
        Ok(Self::derived(&secrets::shared(pool, "signatures", &fresh).await?, purpose))
    }

    fn derived(secret: &Secret, purpose: &str) -> Self {
        Self(SecretBox::new(Box::new(mac(secret, purpose))))
    }

    /// What proves that this server wrote `address`.
    pub fn sign(&self, address: &str) -> String {
        hex(&mac(&self.0, address))
    }

    /// Takes as long whatever differs.
    pub fn has_signed(&self, address: &str, signature: &str) -> bool {
        self.sign(address).as_bytes().ct_eq(signature.as_bytes()).into()
    }
}

fn mac(key: &Secret, text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.expose_secret()).expect("a key of any length is one");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8, purpose: &str) -> SigningKey {
        SigningKey::derived(&SecretBox::new(Box::new([byte; 32])), purpose)
    }

    #[test]
    fn a_signature_is_for_one_address_one_purpose_and_one_secret() {
        let made = key(1, "charts").sign("/a");
        // purpose=$(printf charts | openssl dgst -sha256 -mac HMAC -macopt hexkey:$(printf '01%.0s' $(seq 32)) -r)
        // printf /a | openssl dgst -sha256 -mac HMAC -macopt hexkey:${purpose%% *}
        assert_eq!(made, "1a4ac485c44c23f5d147d2f2a182871e66e8f476f1754bfabd723ec7bec42a8e");
        assert!(key(1, "charts").has_signed("/a", &made));
        assert!(!key(1, "charts").has_signed("/b", &made));
        assert!(!key(1, "reports").has_signed("/a", &made));
        assert!(!key(2, "charts").has_signed("/a", &made));
        for wrong in ["", &made[1..], &made.to_uppercase(), &format!("{made}0")] {
            assert!(!key(1, "charts").has_signed("/a", wrong), "{wrong:?}");
        }
    }
}
