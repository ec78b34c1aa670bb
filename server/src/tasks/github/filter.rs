//! Which changes and tags a project is about.

use globset::{GlobBuilder, GlobSetBuilder};
use plimsoll_domain::job::{check_name, check_ref};
use semver::Version;

use crate::github::answers::Files;
use crate::store::github::links::Link;

/// Whether one of the changed files is the project's. What cannot be told counts: a list that goes on where GitHub
/// stops, and a pattern that cannot be read.
pub(super) fn matches(link: &Link, files: &Files) -> bool {
    if link.paths.is_empty() || !files.complete {
        return true;
    }
    let mut globs = GlobSetBuilder::new();
    for pattern in &link.paths {
        match glob(&whole(pattern)) {
            Ok(glob) => globs.add(glob),
            Err(_) => return true,
        };
    }
    globs.build().map_or(true, |globs| files.paths.iter().any(|path| globs.is_match(path)))
}

/// Whether a tag is a version of the project: by its pattern, else if it is a semantic version with or without a `v`.
pub fn is_version(link: &Link, tag: &str) -> bool {
    // Others no runner takes.
    if check_ref(tag).is_err() {
        return false;
    }
    match &link.tags {
        Some(pattern) => glob(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(tag)),
        None => Version::parse(tag.strip_prefix('v').unwrap_or(tag)).is_ok(),
    }
}

/// Whether a pattern for paths or tags can be read; else why not.
pub(in crate::tasks) fn check(pattern: &str) -> Result<(), String> {
    check_name(pattern)?;
    glob(&whole(pattern)).map(drop).map_err(|error| error.kind().to_string())
}

/// A star stays within its part of the path, two do not.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// A folder stands for what is in it.
fn whole(pattern: &str) -> String {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    match pattern.ends_with('/') {
        true => format!("{pattern}**"),
        false => pattern.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(paths: &[&str], tags: Option<&str>) -> Link {
        Link {
            project: "ranker".parse().unwrap(),
            repository: 1,
            plan: "plimsoll.toml".to_owned(),
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
            tags: tags.map(ToOwned::to_owned),
            labels: Default::default(),
            read_commit: None,
            read_error: None,
            queue_minutes: 60,
            created_by: "a test".to_owned(),
        }
    }

    fn changed(paths: &[&str]) -> Files {
        Files { paths: paths.iter().map(|&path| path.to_owned()).collect(), complete: true }
    }

    #[test]
    fn a_change_matches_when_one_file_does() {
        let ours = link(&["src/**", "models/", "*.toml"], None);
        for paths in [&["README.md", "src/a/b.py"][..], &["models/a/b.bin"], &["plimsoll.toml"]] {
            assert!(matches(&ours, &changed(paths)), "{paths:?}");
        }
        for paths in [&["README.md"][..], &["docs/src/a.py"], &["docs/plimsoll.toml"], &["srcs/a"], &[]] {
            assert!(!matches(&ours, &changed(paths)), "{paths:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_matches() {
        let cut = Files { complete: false, ..changed(&["README.md"]) };
        assert!(matches(&link(&["src/**"], None), &cut));
        assert!(matches(&link(&[], None), &changed(&["README.md"])));
        assert!(matches(&link(&["src/[", "x"], None), &changed(&["README.md"])));
    }

    #[test]
    fn a_tag_is_a_version_by_pattern_or_by_its_form() {
        let semantic = link(&[], None);
        for tag in ["1.2.3", "v1.2.3", "v1.2.3-rc.1+build.5"] {
            assert!(is_version(&semantic, tag), "{tag}");
        }
        for tag in ["v1", "v1.2", "nightly", "release-1.2.3", "v1.2.3.4", "vv1.2.3", "v01.2.3", "", "a/v1.2.3"] {
            assert!(!is_version(&semantic, tag), "{tag}");
        }
        let named = link(&[], Some("ranker/v*"));
        assert!(is_version(&named, "ranker/v2") && !is_version(&named, "v2.0.0") && !is_version(&named, "ranker/v2/x"));
        assert!(!is_version(&link(&[], Some("v[")), "v1.2.3"));
        for odd in ["--upload-pack=x", "v1..2", "v1\u{7}", &"v".repeat(201)] {
            assert!(!is_version(&link(&[], Some("**")), odd), "{odd:?}");
        }
    }
}
