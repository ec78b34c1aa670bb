//! What is asked about a repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use plimsoll_domain::ids::CommitSha;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::call::{Call, Page, pages};
use super::{Error, MAX_PAGES, Repo, Result, complete};
use crate::github::answers::{self, Branch, Comment, Compared, Files, Permission, Pull, Repository, Required};
use crate::github::place::{segment, segments};

/// GitHub lists no more files of a pull request.
const MOST_FILES: usize = 3_000;
/// An annotated tag may point to another.
const MOST_TAGS_DEEP: usize = 10;
/// Of a file that is read.
const MAX_FILE: u64 = 512 << 10;
/// GitHub closes a conversation at 2,500 comments; it looks through the newest thousand check suites of a commit.
const MOST_ON_ONE: usize = 40;

impl Repo<'_> {
    /// The repository itself; `None` when it is not reached.
    pub async fn about(&self) -> Result<Option<Repository>> {
        let path = self.place.path("");
        match self.look(&Call::get(path.trim_end_matches('/')).needs("metadata: read")).await? {
            Some(answer) => answer.json().map(Some),
            None => Ok(None),
        }
    }

    pub async fn pull(&self, number: i64) -> Result<Pull> {
        let call = Call::get(self.place.path(&format!("pulls/{number}"))).needs("pull_requests: read");
        self.ask(&call).await?.json()
    }

    /// Those that are open, the one that changed last first.
    pub async fn open_pulls(&self) -> Result<Vec<Pull>> {
        let path = self.place.path("pulls?state=open&sort=updated&direction=desc");
        complete(self.list::<Vec<Pull>, _>(&path, "pull_requests: read", MAX_PAGES).await?, "pull requests")
    }

    pub async fn pull_files(&self, number: i64) -> Result<Files> {
        let path = self.place.path(&format!("pulls/{number}/files"));
        let (files, whole) =
            self.list::<Vec<answers::File>, _>(&path, "pull_requests: read", MOST_FILES.div_ceil(100)).await?;
        let files = Files::of(files, MOST_FILES);
        Ok(Files { complete: files.complete && whole, ..files })
    }

    /// Each is a commit, a branch or a tag.
    pub async fn compare(&self, base: &str, head: &str) -> Result<Compared> {
        // One commit is enough: the files are all on the first page.
        let path = self.place.path(&format!("compare/{}...{}?per_page=1&page=1", segment(base), segment(head)));
        let wire: answers::ComparedWire = self.ask(&Call::get(path).needs("contents: read")).await?.json()?;
        Ok(wire.into())
    }

    /// The commit that a tag leads to. `None` without the tag, or when it leads to something else.
    pub async fn tag_commit(&self, tag: &str) -> Result<Option<CommitSha>> {
        let mut path = self.place.path(&format!("git/ref/tags/{}", segments(tag)));
        for _ in 0..MOST_TAGS_DEEP {
            let Some(answer) = self.look(&Call::get(path).needs("contents: read")).await? else { return Ok(None) };
            let answers::Object { sha, kind } = answer.json::<answers::Leads>()?.object;
            match kind.as_str() {
                "commit" => return Ok(Some(sha)),
                "tag" => path = self.place.path(&format!("git/tags/{sha}")),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// All tags, each with its commit, in GitHub's order.
    pub async fn tags(&self) -> Result<Vec<(String, CommitSha)>> {
        let path = self.place.path("tags");
        let tags = complete(self.list::<Vec<answers::Tag>, _>(&path, "contents: read", MAX_PAGES).await?, "tags")?;
        Ok(tags.into_iter().map(|tag| (tag.name, tag.commit.sha)).collect())
    }

    pub async fn branch(&self, name: &str) -> Result<Option<Branch>> {
        let call = Call::get(self.place.path(&format!("branches/{}", segment(name)))).needs("contents: read");
        let Some(answer) = self.look(&call).await? else { return Ok(None) };
        let branch: answers::BranchWire = answer.json()?;
        let head = branch.commit.sha.clone();
        let mut required = branch.required();
        required.extend(self.ruled(name).await?);
        required.sort();
        required.dedup();
        Ok(Some(Branch { head, required }))
    }

    /// What rulesets require. An installation of one's own may be too old to know any, an account may not pay for them.
    async fn ruled(&self, branch: &str) -> Result<Vec<Required>> {
        let path = self.place.path(&format!("rules/branches/{}", segment(branch)));
        match self.list::<Vec<answers::Rule>, _>(&path, "metadata: read", MAX_PAGES).await {
            Ok((rules, _)) => Ok(rules.into_iter().flat_map(answers::Rule::required).collect()),
            Err(Error::Missing | Error::Refused { status: 403, .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// A text file as it is at a commit, branch or tag; `None` without one there.
    pub async fn file(&self, path: &str, at: &str) -> Result<Option<String>> {
        let call = Call::get(self.place.path(&format!("contents/{}?ref={}", segments(path), segment(at))));
        let Some(answer) = self.look(&call.needs("contents: read")).await? else { return Ok(None) };
        // Of a folder it is a list.
        if answer.json::<Vec<IgnoredAny>>().is_ok() {
            return Ok(None);
        }
        let entry: answers::Entry = answer.json()?;
        if entry.kind != "file" {
            return Ok(None);
        }
        let unfit = |why: &str| Error::Refused { status: 200, message: format!("{path} is {why}") };
        // Beyond 1 MiB GitHub leaves the content out.
        if entry.size > MAX_FILE {
            return Err(unfit(&format!("longer than {} KiB", MAX_FILE >> 10)));
        }
        let base64: String = entry.content.split_whitespace().collect();
        let bytes = STANDARD.decode(base64).map_err(|_| unfit("not in the form that GitHub documents"))?;
        String::from_utf8(bytes).map(Some).map_err(|_| unfit("not text"))
    }

    /// What somebody may do here. Nothing, when GitHub knows no such account.
    pub async fn permission(&self, login: &str) -> Result<Permission> {
        let path = self.place.path(&format!("collaborators/{}/permission", segment(login)));
        match self.look(&Call::get(path).needs("metadata: read")).await? {
            Some(answer) => Ok(answer.json::<answers::PermissionWire>()?.into()),
            None => Ok(Permission::None),
        }
    }

    /// A check run of ours; of several the newest.
    pub async fn find_check(&self, head: &CommitSha, name: &str, external_id: Uuid) -> Result<Option<i64>> {
        let app_id = self.client.app_id();
        let query = format!("check_name={}&filter=all&app_id={app_id}", segment(name));
        let path = self.place.path(&format!("commits/{head}/check-runs?{query}"));
        let runs = complete(self.list::<answers::CheckRuns, _>(&path, "checks: read", MOST_ON_ONE).await?, "checks")?;
        let ours = runs.into_iter().filter(|run: &answers::CheckRun| run.is(name, external_id, app_id));
        Ok(ours.map(|run| run.id).max())
    }

    /// All comments of a pull request's conversation, the oldest first.
    pub async fn comments(&self, pull: i64) -> Result<Vec<Comment>> {
        let path = self.place.path(&format!("issues/{pull}/comments"));
        complete(self.list::<Vec<Comment>, _>(&path, "pull_requests: read", MOST_ON_ONE).await?, "comments")
    }

    async fn list<P, T>(&self, path: &str, needs: &str, most: usize) -> Result<(Vec<T>, bool)>
    where
        P: serde::de::DeserializeOwned + Into<Vec<T>>,
    {
        let ask = |page: Page| async move { self.ask(&Call::get(page.of(path)).needs(needs)).await }.boxed();
        pages::<P, T>(most, ask).await
    }
}
