//! Check runs are told. Nothing here looks whether it was told before.

use hyper::Method;
use jiff::Timestamp;
use plimsoll_domain::ids::CommitSha;
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::Call;
use super::{Repo, Result};
use crate::github::answers::Id;
use crate::github::text::CheckText;

/// A check run as it should be.
#[derive(Debug, Clone, Copy)]
pub struct CheckWrite<'a> {
    pub name: &'a str,
    pub head: &'a CommitSha,
    pub external_id: Uuid,
    pub started_at: Option<Timestamp>,
    pub text: &'a CheckText,
}

const CHECKS: &str = "checks: write";

impl Repo<'_> {
    /// After an error that passes it may be there: it is found by its `external_id`.
    pub async fn create_check(&self, check: &CheckWrite<'_>) -> Result<i64> {
        let mut body = check.body();
        body["head_sha"] = json!(check.head);
        let call = Call::new(Method::POST, self.place.path("check-runs")).body(body).needs(CHECKS);
        Ok(self.ask(&call).await?.json::<Id>()?.id)
    }

    /// One that is completed does not go back.
    pub async fn update_check(&self, id: i64, check: &CheckWrite<'_>) -> Result<()> {
        let path = self.place.path(&format!("check-runs/{id}"));
        self.ask(&Call::new(Method::PATCH, path).body(check.body()).needs(CHECKS)).await?;
        Ok(())
    }
}

impl CheckWrite<'_> {
    fn body(&self) -> Value {
        let CheckText { status, conclusion, title, summary, text, details_url, actions } = self.text;
        let actions: Vec<Value> = actions
            .iter()
            .map(|one| json!({ "label": one.label, "description": one.description, "identifier": one.identifier }))
            .collect();
        let mut body = json!({
            "name": self.name,
            "external_id": self.external_id,
            "status": status.name(),
            "output": { "title": title, "summary": summary },
            "actions": actions,
        });
        // Unset is not null here.
        let optional = [
            ("conclusion", conclusion.map(|conclusion| json!(conclusion.name()))),
            ("details_url", details_url.as_ref().map(|url| json!(url))),
            ("started_at", self.started_at.map(|at| json!(at))),
        ];
        if let Some(text) = text {
            body["output"]["text"] = json!(text);
        }
        for (name, value) in optional {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        body
    }
}
