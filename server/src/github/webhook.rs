//! A delivery of GitHub's as it comes in: signed, in one of two forms, and named by its headers.

use secrecy::SecretString;

use super::events;
use super::signature::is_valid;

/// GitHub sends none that are larger.
pub const MAX_BYTES: usize = 25 << 20;
const MAX_ID: usize = 100;
const MAX_EVENT: usize = 64;

/// A request, as far as it matters.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// `X-Hub-Signature-256`
    pub signature: Option<&'a str>,
    /// `X-GitHub-Delivery`
    pub delivery: Option<&'a str>,
    /// `X-GitHub-Event`
    pub event: Option<&'a str>,
    /// `Content-Type`
    pub content_type: Option<&'a str>,
    pub body: Vec<u8>,
}

/// A delivery that is GitHub's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: String,
    pub event: String,
    /// See [`events::lane`].
    pub lane: Option<String>,
    /// The JSON, or what came in its place.
    pub payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("X-Hub-Signature-256 is missing: set the webhook's secret at GitHub")]
    Unsigned,
    #[error("X-Hub-Signature-256 does not fit the body: the webhook's secret at GitHub is not the one of this server")]
    Forged,
    #[error("X-GitHub-Delivery must be 1 to {MAX_ID} visible ASCII characters")]
    Delivery,
    #[error("X-GitHub-Event must be 1 to {MAX_EVENT} visible ASCII characters")]
    Event,
    #[error("the body must be application/json or application/x-www-form-urlencoded")]
    ContentType,
}

impl Sent<'_> {
    /// Nothing of it is looked at before the signature is found right. What is in the payload is not judged here.
    pub fn open(self, secret: &SecretString) -> Result<Delivery, Refused> {
        let signature = self.signature.ok_or(Refused::Unsigned)?;
        if !is_valid(secret, &self.body, signature) {
            return Err(Refused::Forged);
        }
        let id = self.delivery.filter(|id| is_name(id, MAX_ID)).ok_or(Refused::Delivery)?.to_owned();
        let event = self.event.filter(|event| is_name(event, MAX_EVENT)).ok_or(Refused::Event)?.to_owned();
        let payload = self.payload()?;
        Ok(Delivery { id, event, lane: events::lane(&payload), payload })
    }

    fn payload(self) -> Result<Vec<u8>, Refused> {
        let kind = self.content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "" | "application/json" => Ok(self.body),
            "application/x-www-form-urlencoded" => Ok(payload_of_form(&self.body)),
            _ => Err(Refused::ContentType),
        }
    }
}

/// Nothing when the form has no payload: it cannot be read later.
fn payload_of_form(body: &[u8]) -> Vec<u8> {
    let payload = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload");
    payload.map(|(_, payload)| payload.into_owned().into_bytes()).unwrap_or_default()
}

fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"repository": {"id": 5}}"#;
    /// printf '{"repository": {"id": 5}}' | openssl dgst -sha256 -hmac secret
    const SIGNATURE: &str = "sha256=37ee127d6e62cc7a71bd53a7617c30e64091a72a467309f2059f5cbee92bd234";

    fn sent() -> Sent<'static> {
        Sent {
            signature: Some(SIGNATURE),
            delivery: Some("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            event: Some("push"),
            content_type: Some("application/json"),
            body: BODY.to_vec(),
        }
    }

    fn open(sent: Sent<'_>) -> Result<Delivery, Refused> {
        sent.open(&"secret".into())
    }

    #[test]
    fn a_signed_delivery_is_opened_and_nothing_else() {
        let delivery = open(sent()).unwrap();
        assert_eq!((delivery.event.as_str(), delivery.lane.as_deref()), ("push", Some("repository 5")));
        assert_eq!(delivery.payload, BODY);
        assert_eq!(open(Sent { content_type: None, ..sent() }), Ok(delivery.clone()));
        assert_eq!(open(Sent { content_type: Some("application/JSON; charset=utf-8"), ..sent() }), Ok(delivery));

        let long = "x".repeat(MAX_ID + 1);
        let cases = [
            (Sent { signature: None, ..sent() }, Refused::Unsigned),
            (Sent { signature: Some("sha256=00"), ..sent() }, Refused::Forged),
            // Before anything else is looked at.
            (Sent { signature: Some("sha256=00"), delivery: None, event: None, ..sent() }, Refused::Forged),
            (Sent { body: b"{}".to_vec(), ..sent() }, Refused::Forged),
            (Sent { delivery: None, ..sent() }, Refused::Delivery),
            (Sent { delivery: Some(&long), ..sent() }, Refused::Delivery),
            (Sent { delivery: Some(""), ..sent() }, Refused::Delivery),
            (Sent { event: Some("a b"), ..sent() }, Refused::Event),
            (Sent { event: None, ..sent() }, Refused::Event),
            (Sent { content_type: Some("text/plain"), ..sent() }, Refused::ContentType),
        ];
        for (sent, refused) in cases {
            assert_eq!(open(sent), Err(refused));
        }
    }

    #[test]
    fn a_form_carries_the_payload() {
        let form = |body: &'static str, signature: &'static str| Sent {
            body: body.as_bytes().to_vec(),
            signature: Some(signature),
            content_type: Some("application/x-www-form-urlencoded"),
            ..sent()
        };
        // openssl dgst -sha256 -hmac secret
        let signed = [
            (
                "other=1&payload=%7B%22repository%22%3A+%7B%22id%22%3A+5%7D%7D",
                "sha256=f5ae0c310d8584d06284c22b4c67e75541d89495c816ad35beacddbc25b7418c",
                BODY,
            ),
            ("other=1", "sha256=ef74534bc98545f5d4717ac77e4b9fceb63fde78a0c4a67e6493cbc03c192d1f", b""),
        ];
        for (body, signature, payload) in signed {
            assert_eq!(open(form(body, signature)).unwrap().payload, payload, "{body}");
        }
    }
}
