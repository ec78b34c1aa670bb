//! The conversation of a pull request is told. Nothing here looks whether it was told before.

use hyper::Method;
use serde_json::json;

use super::call::Call;
use super::{Repo, Result};
use crate::github::answers::Id;

const COMMENTS: &str = "pull_requests: write";

impl Repo<'_> {
    /// After an error that passes it may be there: it is found by what its body says.
    pub async fn create_comment(&self, pull: i64, body: &str) -> Result<i64> {
        let path = self.place.path(&format!("issues/{pull}/comments"));
        let call = Call::new(Method::POST, path).body(json!({ "body": body })).needs(COMMENTS);
        Ok(self.ask(&call).await?.json::<Id>()?.id)
    }

    pub async fn update_comment(&self, id: i64, body: &str) -> Result<()> {
        let path = self.place.path(&format!("issues/comments/{id}"));
        self.ask(&Call::new(Method::PATCH, path).body(json!({ "body": body })).needs(COMMENTS)).await?;
        Ok(())
    }

    /// Well too when it is gone already.
    pub async fn delete_comment(&self, id: i64) -> Result<()> {
        let path = self.place.path(&format!("issues/comments/{id}"));
        self.look(&Call::new(Method::DELETE, path).needs(COMMENTS)).await?;
        Ok(())
    }
}
