//! Where in GitHub something is.

use crate::store::github::repositories::Repository;

/// A repository, and the installation of the App that reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub installation: i64,
    /// owner/name
    pub full_name: String,
}

impl From<&Repository> for Place {
    fn from(repository: &Repository) -> Self {
        Self { installation: repository.installation, full_name: repository.full_name.clone() }
    }
}

impl Place {
    /// The path of something in it. `rest` is encoded.
    pub(super) fn path(&self, rest: &str) -> String {
        let (owner, name) = self.full_name.split_once('/').unwrap_or((&self.full_name, ""));
        format!("/repos/{}/{}/{rest}", segment(owner), segment(name))
    }
}

/// As one segment of a path or one value in a query, whatever is in it.
pub(super) fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    // On their own they would mean another path.
    if text.bytes().all(|byte| byte == b'.') {
        return "%2E".repeat(text.len());
    }
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// As segments: slashes part them.
pub(super) fn segments(text: &str) -> String {
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_leave_their_place() {
        let place = Place { installation: 1, full_name: "octo/ranker".to_owned() };
        assert_eq!(place.path("git/ref/tags/v1"), "/repos/octo/ranker/git/ref/tags/v1");
        assert_eq!(segment("a/b?c#d%e é"), "a%2Fb%3Fc%23d%25e%20%C3%A9");
        assert_eq!(segments("bench/../../x/plimsoll.toml"), "bench/%2E%2E/%2E%2E/x/plimsoll.toml");
        let odd = Place { installation: 1, full_name: "../x/y".to_owned() };
        assert_eq!(odd.path("pulls"), "/repos/%2E%2E/x%2Fy/pulls");
    }
}
