//! Commits, each with its whole tree: enough for merge bases, changed files and files at a commit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sha2::{Digest as _, Sha256};

pub(crate) type Tree = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub(crate) struct Graph {
    seed: i64,
    objects: usize,
    commits: BTreeMap<String, Commit>,
}

#[derive(Debug, Clone)]
struct Commit {
    parents: Vec<String>,
    tree: Tree,
}

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) status: &'static str,
    pub(super) before: Option<String>,
}

impl Graph {
    pub(super) fn new(seed: i64) -> Self {
        Self { seed, objects: 0, commits: BTreeMap::new() }
    }

    /// The name of a new object.
    pub(super) fn object(&mut self) -> String {
        self.objects += 1;
        let hash = Sha256::digest(format!("{} {}", self.seed, self.objects));
        hash.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
    }

    /// On the first parent's tree. `None` removes a file.
    pub(crate) fn commit(&mut self, parents: &[&str], changes: &[(&str, Option<&str>)]) -> String {
        let mut tree = parents.first().map(|parent| self.commits[*parent].tree.clone()).unwrap_or_default();
        for (path, text) in changes {
            match text {
                Some(text) => tree.insert((*path).to_owned(), (*text).to_owned()),
                None => tree.remove(*path),
            };
        }
        let sha = self.object();
        let parents = parents.iter().map(|parent| (*parent).to_owned()).collect();
        self.commits.insert(sha.clone(), Commit { parents, tree });
        sha
    }

    pub(super) fn contains(&self, sha: &str) -> bool {
        self.commits.contains_key(sha)
    }

    /// The whole name of a commit of which the first digits are known.
    pub(super) fn whole(&self, start: &str) -> Option<&str> {
        if start.len() < 7 {
            return None;
        }
        self.commits.keys().find(|sha| sha.starts_with(start)).map(String::as_str)
    }

    pub(super) fn tree(&self, sha: &str) -> &Tree {
        &self.commits[sha].tree
    }

    /// The nearest to the head.
    pub(super) fn merge_base(&self, base: &str, head: &str) -> Option<String> {
        let known = self.ancestors(base);
        let mut next = VecDeque::from([head.to_owned()]);
        let mut seen = BTreeSet::new();
        while let Some(sha) = next.pop_front() {
            if known.contains(&sha) {
                return Some(sha);
            }
            if seen.insert(sha.clone()) {
                next.extend(self.commits[&sha].parents.iter().cloned());
            }
        }
        None
    }

    /// How many commits `of` has that `than` does not have.
    pub(super) fn ahead(&self, of: &str, than: &str) -> usize {
        self.ancestors(of).difference(&self.ancestors(than)).count()
    }

    /// With itself.
    fn ancestors(&self, sha: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut next = vec![sha.to_owned()];
        while let Some(sha) = next.pop() {
            if found.insert(sha.clone()) {
                next.extend(self.commits[&sha].parents.iter().cloned());
            }
        }
        found
    }

    /// A file that is gone and one that is new with the same content are one that has another name.
    pub(super) fn changes(&self, from: &str, to: &str) -> Vec<Change> {
        let (from, to) = (self.tree(from), self.tree(to));
        let mut gone: Vec<&String> = from.keys().filter(|path| !to.contains_key(*path)).collect();
        let mut changes = Vec::new();
        for (path, text) in to {
            let (status, before) = match from.get(path) {
                Some(old) if old == text => continue,
                Some(_) => ("modified", None),
                None => match gone.iter().position(|old| from[*old] == *text) {
                    Some(at) => ("renamed", Some(gone.remove(at).clone())),
                    None => ("added", None),
                },
            };
            changes.push(Change { path: path.clone(), status, before });
        }
        changes.extend(gone.into_iter().map(|path| Change { path: path.clone(), status: "removed", before: None }));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }
}
