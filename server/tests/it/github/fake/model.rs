//! What there is on the fake. Tests look at it and change it as people do on GitHub.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::auth::Issued;
use super::graph::Graph;
use super::route::{Incoming, Reply};

pub(crate) const APP: i64 = 4_711;
pub(crate) const SLUG: &str = "plimsoll-test";

pub(crate) struct Model {
    pub(crate) installations: BTreeMap<i64, Installation>,
    pub(crate) repositories: BTreeMap<i64, Repository>,
    /// What the App may do, such as `checks` → `write`.
    pub(crate) permissions: BTreeMap<String, String>,
    /// Logins that GitHub does not know.
    pub(crate) unknown_logins: BTreeSet<String>,
    /// Requests by installations until the primary limit; `None` without one.
    pub(crate) requests_left: Option<u32>,
    /// Writes until the secondary limit; `None` without one.
    pub(crate) writes_left: Option<u32>,
    /// What `retry-after` says then, in seconds.
    pub(crate) retry_after: u64,
    /// GitHub's time, when it is not the real one.
    pub(crate) clock: Option<Timestamp>,
    /// Codes for which a new App is given, as the page for its manifest brings them.
    pub(crate) manifest_codes: Vec<String>,
    pub(super) token_life: Duration,
    pub(super) tokens: Vec<Issued>,
    /// Old names, and whose they were.
    moved: BTreeMap<String, i64>,
    last_id: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) account: String,
    pub(crate) suspended: bool,
    pub(crate) repositories: BTreeSet<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) id: i64,
    pub(crate) full_name: String,
    pub(crate) private: bool,
    pub(crate) default_branch: String,
    pub(crate) graph: Graph,
    /// Name → commit.
    pub(crate) branches: BTreeMap<String, String>,
    /// Name → commit, or the annotated tag's object.
    pub(crate) tags: BTreeMap<String, String>,
    /// Annotated tags: object → what it points to.
    pub(crate) tag_objects: BTreeMap<String, String>,
    /// Branch → checks that its protection requires, with the App that they must come from.
    pub(crate) protection: BTreeMap<String, Vec<(String, Option<i64>)>>,
    /// The same, by rulesets.
    pub(crate) rulesets: BTreeMap<String, Vec<(String, Option<i64>)>>,
    pub(crate) pulls: BTreeMap<i64, Pull>,
    pub(crate) checks: BTreeMap<i64, CheckRun>,
    pub(crate) comments: BTreeMap<i64, Comment>,
    /// Login → role: `admin`, `maintain`, `write`, `triage`, `read`. Others read what is public.
    pub(crate) roles: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) number: i64,
    pub(crate) title: String,
    pub(crate) open: bool,
    pub(crate) merged: bool,
    pub(crate) draft: bool,
    pub(crate) head: String,
    pub(crate) head_ref: String,
    /// The id of another repository, or `None` of one that is gone.
    pub(crate) head_repository: Option<i64>,
    pub(crate) base_ref: String,
    pub(crate) author: Option<String>,
    pub(crate) updated_at: Timestamp,
}

/// As it was last told.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckRun {
    pub(crate) id: i64,
    pub(crate) app_id: i64,
    pub(crate) name: String,
    pub(crate) head_sha: String,
    pub(crate) external_id: String,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) text: String,
    /// Identifiers of the buttons.
    pub(crate) actions: Vec<String>,
    /// How often it was told.
    pub(crate) writes: usize,
    pub(crate) output: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub(crate) id: i64,
    pub(crate) pull: i64,
    pub(crate) login: Option<String>,
    pub(crate) app_id: Option<i64>,
    pub(crate) body: String,
    pub(crate) created_at: Timestamp,
    /// How often it was changed.
    pub(crate) edits: usize,
}

impl Default for Model {
    fn default() -> Self {
        let all = [("checks", "write"), ("contents", "read"), ("issues", "read"), ("metadata", "read")];
        let all = all.into_iter().chain([("pull_requests", "write"), ("merge_queues", "read")]);
        Self {
            installations: BTreeMap::new(),
            repositories: BTreeMap::new(),
            permissions: all.map(|(name, level)| (name.to_owned(), level.to_owned())).collect(),
            unknown_logins: BTreeSet::new(),
            requests_left: None,
            writes_left: None,
            retry_after: 60,
            clock: None,
            manifest_codes: Vec::new(),
            token_life: Duration::from_secs(3_600),
            tokens: Vec::new(),
            moved: BTreeMap::new(),
            // Ids of GitHub are larger than what a float holds.
            last_id: 9_007_199_254_740_993,
        }
    }
}

impl Model {
    /// Installed for its owner, with a first commit on `main`.
    pub(crate) fn add_repository(&mut self, full_name: &str) -> i64 {
        let id = self.next_id();
        let owner = full_name.split('/').next().expect("owner/name");
        let known =
            self.installations.iter().find(|(_, one)| one.account == owner).map(|(installation, _)| *installation);
        let installation = known.unwrap_or_else(|| self.next_id());
        let new = || Installation { account: owner.to_owned(), suspended: false, repositories: BTreeSet::new() };
        self.installations.entry(installation).or_insert_with(new).repositories.insert(id);
        let mut graph = Graph::new(id);
        let first = graph.commit(&[], &[("README.md", Some("A model service.\n"))]);
        self.repositories.insert(
            id,
            Repository {
                id,
                full_name: full_name.to_owned(),
                private: false,
                default_branch: "main".to_owned(),
                graph,
                branches: [("main".to_owned(), first)].into(),
                tags: BTreeMap::new(),
                tag_objects: BTreeMap::new(),
                protection: BTreeMap::new(),
                rulesets: BTreeMap::new(),
                pulls: BTreeMap::new(),
                checks: BTreeMap::new(),
                comments: BTreeMap::new(),
                roles: BTreeMap::new(),
            },
        );
        id
    }

    pub(crate) fn installation_of(&self, repository: i64) -> Option<i64> {
        let found = self.installations.iter().find(|(_, one)| one.repositories.contains(&repository));
        found.map(|(installation, _)| *installation)
    }

    pub(crate) fn repo(&mut self, id: i64) -> &mut Repository {
        self.repositories.get_mut(&id).expect("a repository of this id")
    }

    /// The old name leads to it for ever.
    pub(crate) fn rename(&mut self, id: i64, full_name: &str) {
        let old = std::mem::replace(&mut self.repo(id).full_name, full_name.to_owned());
        self.moved.insert(old, id);
    }

    /// A new commit on a branch, which is made if need be (from the default one). `None` removes a file.
    pub(crate) fn push(&mut self, id: i64, branch: &str, changes: &[(&str, Option<&str>)]) -> String {
        let repository = self.repo(id);
        let from = repository.branches.get(branch).unwrap_or(&repository.branches[&repository.default_branch]).clone();
        let sha = repository.graph.commit(&[&from], changes);
        repository.branches.insert(branch.to_owned(), sha.clone());
        let now = self.now();
        for pull in self.repo(id).pulls.values_mut().filter(|pull| pull.open && pull.head_ref == branch) {
            (pull.head, pull.updated_at) = (sha.clone(), now);
        }
        sha
    }

    /// A branch's pull request into the default one; its number.
    pub(crate) fn open_pull(&mut self, id: i64, branch: &str, author: &str) -> i64 {
        let (number, now) = (i64::try_from(self.repo(id).pulls.len()).unwrap() + 1, self.now());
        let repository = self.repo(id);
        let pull = Pull {
            number,
            title: format!("Change of {branch}"),
            open: true,
            merged: false,
            draft: false,
            head: repository.branches[branch].clone(),
            head_ref: branch.to_owned(),
            head_repository: Some(id),
            base_ref: repository.default_branch.clone(),
            author: Some(author.to_owned()),
            updated_at: now,
        };
        repository.pulls.insert(number, pull);
        number
    }

    /// A tag of a commit. An annotated one is an object of its own, which is returned.
    pub(crate) fn tag(&mut self, id: i64, name: &str, commit: &str, annotated: bool) -> String {
        let repository = self.repo(id);
        let object = if annotated { repository.graph.object() } else { commit.to_owned() };
        if annotated {
            repository.tag_objects.insert(object.clone(), commit.to_owned());
        }
        repository.tags.insert(name.to_owned(), object.clone());
        object
    }

    /// Somebody writes on a pull request; the comment's id.
    pub(crate) fn comment(&mut self, id: i64, pull: i64, login: &str, body: &str) -> i64 {
        let (comment, created_at) = (self.next_id(), self.now());
        let login = Some(login.to_owned());
        let new = Comment { id: comment, pull, login, app_id: None, body: body.to_owned(), created_at, edits: 0 };
        self.repo(id).comments.insert(comment, new);
        comment
    }

    /// GitHub's times have no fractions of a second.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.unwrap_or_else(Timestamp::now);
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    pub(super) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn find(&self, installation: i64, full_name: &str, incoming: &Incoming<'_>) -> Result<i64, Reply> {
        let named = self.repositories.values().find(|one| one.full_name.eq_ignore_ascii_case(full_name));
        if let Some(repository) = named {
            return self.reaches(installation, repository.id).map(|()| repository.id);
        }
        let moved = self.moved.get(full_name).ok_or_else(Reply::missing)?;
        let rest: Vec<&str> = incoming.segments.iter().skip(3).map(String::as_str).collect();
        let status = if incoming.method == "GET" { 301 } else { 307 };
        let to = format!("{}/repositories/{moved}/{}", super::serve::BASE, rest.join("/"));
        Err(Reply::told(status, "Moved Permanently").header("location", to))
    }

    pub(super) fn reaches(&self, installation: i64, repository: i64) -> Result<(), Reply> {
        let reached = self.installations.get(&installation).is_some_and(|one| one.repositories.contains(&repository));
        if reached { Ok(()) } else { Err(Reply::missing()) }
    }

    pub(super) fn permits(&self, name: &str, level: &str) -> Result<(), Reply> {
        match self.permissions.get(name).map(String::as_str) {
            Some("write") => Ok(()),
            Some("read") if level == "read" => Ok(()),
            _ => {
                let refused = Reply::told(403, "Resource not accessible by integration");
                Err(refused.header("x-accepted-github-permissions", format!("{name}={level}")))
            }
        }
    }

    /// The limit that a request meets, if any.
    pub(super) fn limit(&mut self, is_write: bool) -> Option<Reply> {
        if let Some(left) = &mut self.requests_left {
            let Some(less) = left.checked_sub(1) else {
                let reset = Timestamp::now().as_second() + i64::try_from(self.retry_after).expect("a short time");
                let refused = Reply::told(403, "API rate limit exceeded for installation");
                return Some(refused.header("x-ratelimit-remaining", 0).header("x-ratelimit-reset", reset));
            };
            *left = less;
        }
        let left = self.writes_left.as_mut().filter(|_| is_write)?;
        let Some(less) = left.checked_sub(1) else {
            let refused = Reply::told(403, "You have exceeded a secondary rate limit");
            return Some(refused.header("retry-after", self.retry_after));
        };
        *left = less;
        None
    }
}
